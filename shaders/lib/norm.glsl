/* Channel of element j of row r, and its place in x. */
uint channel_of(uint r, uint j)
{
    uint width = uint(p.c / p.groups);

    return r % uint(p.groups) * width + j % width;
}

uint place_of(uint r, uint j)
{
    uint width = uint(p.c / p.groups);

    return (r / uint(p.groups) * uint(p.pixels) + j / width) * uint(p.c) + channel_of(r, j);
}
