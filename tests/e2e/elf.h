/* Reads ELF files of this machine's class: what the compiler and the linker wrote into a
 * program. A file that is not ELF or is cut fails the test. */
#ifndef ELF_FILE_H
#define ELF_FILE_H

#include "base/unit.h"

#include <link.h>

struct elf {
    const char *path; /* borrowed */
    char *bytes;      /* owned */
    size_t size;
    const ElfW(Ehdr) *head;
    const ElfW(Phdr) *segments; /* head->e_phnum */
    const ElfW(Shdr) *sections; /* head->e_shnum */
};

/* The `size` bytes from offset; a shorter file fails the test. */
static inline const void *elf_at(const struct elf *e, uint64_t offset, uint64_t size)
{
    if (offset > e->size || size > e->size - offset)
        fail_msg("%s: the ELF file is cut", e->path);
    return e->bytes + offset;
}

/* Opens a file; free with elf_close. */
static inline struct elf elf_open(const char *path)
{
    struct elf e = { .path = path };

    if (pm_file_read(path, &e.bytes, &e.size) < 0)
        fail_msg("%s", pm_error_text());
    e.head = elf_at(&e, 0, sizeof *e.head);
    if (memcmp(e.head->e_ident, ELFMAG, SELFMAG) != 0)
        fail_msg("%s: no ELF file", path);
    e.segments = elf_at(&e, e.head->e_phoff, e.head->e_phnum * sizeof *e.segments);
    e.sections = elf_at(&e, e.head->e_shoff, e.head->e_shnum * sizeof *e.sections);
    return e;
}

static inline void elf_close(struct elf *e)
{
    pm_free(e->bytes);
    *e = (struct elf){ 0 };
}

/* The first segment of a type; NULL without one. */
static inline const ElfW(Phdr) *elf_segment(const struct elf *e, uint32_t type)
{
    for (int i = 0; i < e->head->e_phnum; i++)
        if (e->segments[i].p_type == type)
            return &e->segments[i];
    return NULL;
}

/* Entry number n (from 0) of the dynamic section that has the tag; false when there are fewer. */
static inline bool elf_dynamic(const struct elf *e, int64_t tag, int n, uint64_t *value)
{
    const ElfW(Phdr) *s = elf_segment(e, PT_DYNAMIC);
    const ElfW(Dyn) *d = s ? elf_at(e, s->p_offset, s->p_filesz) : NULL;

    for (size_t i = 0; d && i < s->p_filesz / sizeof *d && d[i].d_tag != DT_NULL; i++)
        if (d[i].d_tag == tag && n-- == 0) {
            *value = d[i].d_un.d_val;
            return true;
        }
    return false;
}

/* The flags of a tag; 0 without the tag. */
static inline uint64_t elf_flags(const struct elf *e, int64_t tag)
{
    uint64_t value = 0;

    return elf_dynamic(e, tag, 0, &value) ? value : 0;
}

/* The place in the file of an address of the loaded program. */
static inline const char *elf_address(const struct elf *e, uint64_t address, uint64_t size)
{
    for (int i = 0; i < e->head->e_phnum; i++) {
        const ElfW(Phdr) *s = &e->segments[i];
        if (s->p_type == PT_LOAD && address >= s->p_vaddr && address - s->p_vaddr < s->p_filesz)
            return elf_at(e, s->p_offset + (address - s->p_vaddr), size);
    }
    fail_msg("%s: address %#lx is not in the file", e->path, (unsigned long)address);
    return NULL;
}

/* The n-th text that a tag such as DT_NEEDED or DT_RUNPATH names; NULL when there are fewer. */
static inline const char *elf_dynamic_text(const struct elf *e, int64_t tag, int n)
{
    uint64_t offset, strings = 0;

    if (!elf_dynamic(e, tag, n, &offset))
        return NULL;
    if (!elf_dynamic(e, DT_STRTAB, 0, &strings))
        fail_msg("%s: no DT_STRTAB", e->path);
    return elf_address(e, strings + offset, 1);
}

/* A symbol of SHT_SYMTAB (defined symbols) or SHT_DYNSYM (imported symbols, without a section)
 * whose name begins and ends with these texts; NULL without one. */
static inline const ElfW(Sym) *elf_symbol(const struct elf *e, uint32_t table, const char *begin,
                                          const char *end)
{
    for (int i = 0; i < e->head->e_shnum; i++) {
        const ElfW(Shdr) *s = &e->sections[i];
        if (s->sh_type != table || s->sh_link >= e->head->e_shnum)
            continue;
        const ElfW(Sym) *symbols = elf_at(e, s->sh_offset, s->sh_size);
        const ElfW(Shdr) *strings = &e->sections[s->sh_link];
        for (size_t k = 0; k < s->sh_size / sizeof *symbols; k++) {
            const char *name = elf_at(e, strings->sh_offset + symbols[k].st_name, 1);
            if ((table == SHT_DYNSYM) == (symbols[k].st_shndx == SHN_UNDEF) &&
                strncmp(name, begin, strlen(begin)) == 0 && pm_ends_with(name, end))
                return &symbols[k];
        }
    }
    return NULL;
}

#endif
