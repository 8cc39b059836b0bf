/* Finds row number `row` (image * anchors + anchor) of values in up to 7 level tensors. The
 * including shader has the params in LEVELS. */
struct LevelRow {
    uint level; /* 1 to 7 */
    uint at;    /* row within the level's tensor */
    uint anchor;
};

LevelRow level_row(uint row)
{
    uint anchors = uint(LEVELS.anchors), image = row / anchors, anchor = row % anchors;
    uint first[9] = { 0, 0, uint(LEVELS.first2), uint(LEVELS.first3), uint(LEVELS.first4),
                      uint(LEVELS.first5), uint(LEVELS.first6), uint(LEVELS.first7), anchors };
    uint level = 1;

    while (level < 7 && anchor >= first[level + 1])
        level++;
    return LevelRow(level, image * (first[level + 1] - first[level]) + anchor - first[level],
                    anchor);
}
