/* The program's entrance. */
int main(void)
{
    return 0;
}
