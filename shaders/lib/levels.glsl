/* Finds row number `row` (image * anchors + anchor) of values in up to 7 level tensors. The
 * including shader has the params in LEVELS. */
struct LevelRow {
    uint level; /* 1 to 7 */
    uint at;    /* row within the level's tensor */
    uint anchor;
};

/* The first anchor of a level; of level 8, the number of anchors. An array, indexed by a variable,
 * would be scratch memory on NVIDIA. */
uint first_anchor(uint level)
{
    switch (level) {
    case 1: return 0;
    case 2: return uint(LEVELS.first2);
    case 3: return uint(LEVELS.first3);
    case 4: return uint(LEVELS.first4);
    case 5: return uint(LEVELS.first5);
    case 6: return uint(LEVELS.first6);
    case 7: return uint(LEVELS.first7);
    default: return uint(LEVELS.anchors);
    }
}

LevelRow level_row(uint row)
{
    uint anchors = uint(LEVELS.anchors), image = row / anchors, anchor = row % anchors;
    uint level = 1, first, next;

    while (level < 7 && anchor >= first_anchor(level + 1))
        level++;
    first = first_anchor(level);
    next = first_anchor(level + 1);
    return LevelRow(level, image * (next - first) + anchor - first, anchor);
}
