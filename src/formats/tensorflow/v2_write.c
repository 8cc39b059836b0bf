/* tf_v2, writing: one shard with the tensors sorted by name, an index (table_write.c), and
 * optionally the text file `checkpoint`. */
#include "formats/tensorflow/tf_checkpoint.h"

#include <assert.h>
#include <errno.h>
#include <pumice/formats.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The files and their names. */
struct output {
    struct pm_new_file data, index, state;
    char *data_path, *index_path, *state_path; /* owned */
    struct pm_tf_table_writer table;
};

static int by_name(const void *a, const void *b)
{
    const struct pm_file_tensor *x = *(const struct pm_file_tensor *const *)a;
    const struct pm_file_tensor *y = *(const struct pm_file_tensor *const *)b;

    return strcmp(x->name, y->name);
}

static void add_message(struct pm_tf_table_writer *w, const char *key, const ProtobufCMessage *m)
{
    const size_t size = protobuf_c_message_get_packed_size(m);
    uint8_t *bytes = pm_malloc(size + 1);

    protobuf_c_message_pack(m, bytes);
    pm_tf_table_add(w, key, strlen(key), bytes, size);
    pm_free(bytes);
}

static void add_header(struct pm_tf_table_writer *w)
{
    Pm__Tf__BundleHeader h = PM__TF__BUNDLE_HEADER__INIT;
    Pm__Tf__Version version = PM__TF__VERSION__INIT;

    version.producer = 1;
    h.num_shards = 1;
    h.version = &version;
    add_message(w, "", &h.base);
}

static void add_entry(struct pm_tf_table_writer *w, const struct pm_file_tensor *t, uint64_t offset,
                      uint32_t crc)
{
    Pm__Tf__BundleEntry e = PM__TF__BUNDLE_ENTRY__INIT;
    Pm__Tf__Shape shape = PM__TF__SHAPE__INIT;
    Pm__Tf__Dim dims[PM_FILE_MAX_RANK], *list[PM_FILE_MAX_RANK];

    for (int i = 0; i < t->rank; i++) {
        pm__tf__dim__init(&dims[i]);
        dims[i].size = t->dim[i];
        list[i] = &dims[i];
    }
    shape.n_dim = (size_t)t->rank;
    shape.dim = list;
    e.dtype = pm_tf_dtype_code(t->type);
    e.shape = &shape;
    e.offset = (int64_t)offset;
    e.size = (int64_t)pm_file_tensor_bytes(t);
    e.crc32c = crc;
    add_message(w, t->name, &e.base);
}

static int put_tensors(struct output *o, const struct pm_file_tensor *const *order, size_t count)
{
    int err = PM_OK;
    struct pm_fill_buffer buffer = { 0 };
    uint64_t offset = 0;
    const void *data;

    add_header(&o->table);
    for (size_t i = 0; i < count; i++) {
        const size_t bytes = (size_t)pm_file_tensor_bytes(order[i]);
        if (!order[i]->name[0])
            PM_TRY(pm_fail(PM_EDATA,
                           "%s: a tensor without a name cannot be in a TensorFlow checkpoint",
                           o->index_path));
        if (i && strcmp(order[i - 1]->name, order[i]->name) == 0)
            PM_TRY(pm_fail(PM_EDATA, "%s: two tensors are named '%.200s'", o->index_path,
                           order[i]->name));
        PM_TRY(pm_file_tensor_elements(order[i], &buffer, &data));
        PM_TRY(pm_new_file_add(&o->data, data, bytes));
        add_entry(&o->table, order[i], offset, pm_crc32c_masked(data, bytes));
        offset += bytes;
    }
    pm_tf_table_finish(&o->table);
    PM_TRY(pm_new_file_add(&o->index, o->table.out.text, o->table.out.length));
out:
    pm_free(buffer.data);
    return err;
}

/* As TensorFlow writes it: a path relative to the folder. */
static int put_state(struct output *o, const char *name)
{
    struct pm_str quoted = { 0 }, text = { 0 };
    int err;

    for (const char *p = name; *p; p++) {
        if (*p == '"' || *p == '\\')
            pm_str_add(&quoted, "\\%c", *p);
        else if ((uint8_t)*p < 32 || (uint8_t)*p > 126)
            pm_str_add(&quoted, "\\%03o", (uint8_t)*p);
        else
            pm_str_bytes(&quoted, p, 1);
    }
    pm_str_add(&text, "model_checkpoint_path: \"%s\"\nall_model_checkpoint_paths: \"%s\"\n",
               quoted.text, quoted.text);
    err = pm_new_file_add(&o->state, text.text, text.length);
    pm_str_free(&quoted);
    pm_str_free(&text);
    return err;
}

/* All files are on the disk under temporary names; this renames them. TensorFlow prescribes the
 * names, so the old index is removed first: if the process is killed in between, no checkpoint is
 * left, rather than an index beside the data of another checkpoint. */
static int give_names(struct output *o, bool state)
{
    int err = PM_OK;

    PM_TRY(pm_new_file_sync(&o->data));
    PM_TRY(pm_new_file_sync(&o->index));
    if (state)
        PM_TRY(pm_new_file_sync(&o->state));
    if (unlink(o->index_path) != 0 && errno != ENOENT)
        PM_TRY(pm_fail(PM_EFAIL, "%s: cannot be replaced: %s", o->index_path, strerror(errno)));
    PM_TRY(pm_new_file_commit(&o->data));
    PM_TRY(pm_new_file_commit(&o->index));
    if (state)
        PM_TRY(pm_new_file_commit(&o->state));
out:
    if (err < 0 && !o->index.temporary)
        unlink(o->index_path);
    if (err < 0 && !o->data.temporary)
        unlink(o->data_path);
    if (err < 0 && state && !o->state.temporary)
        unlink(o->state_path);
    return err;
}

static char *joined(const char *a, int a_length, const char *b)
{
    struct pm_str s = { 0 };

    pm_str_add(&s, "%.*s%s", a_length, a, b);
    return s.text;
}

int pm_tf_bundle_write(const char *prefix, const struct pm_file_tensor *tensors, size_t count,
                       bool state)
{
    int err = PM_OK;
    const char *slash = strrchr(prefix, '/'), *name = slash ? slash + 1 : prefix;
    const struct pm_file_tensor **order = pm_malloc((count + 1) * sizeof *order);
    struct output o = { .data.fd = -1, .index.fd = -1, .state.fd = -1 };

    o.data_path = joined(prefix, (int)strlen(prefix), ".data-00000-of-00001");
    o.index_path = joined(prefix, (int)strlen(prefix), ".index");
    o.state_path = joined(prefix, (int)(name - prefix), "checkpoint");
    for (size_t i = 0; i < count; i++) {
        assert(tensors[i].type != PM_DTYPE_OTHER);
        order[i] = &tensors[i];
    }
    qsort(order, count, sizeof *order, by_name);
    if (!*name)
        PM_TRY(pm_fail(PM_ECONFIG,
                       "%s: a TensorFlow checkpoint needs a file name after its folder, as "
                       "in %smodel.ckpt",
                       prefix, prefix));
    PM_TRY(pm_new_file_open(&o.data, o.data_path));
    PM_TRY(pm_new_file_open(&o.index, o.index_path));
    if (state) {
        PM_TRY(pm_new_file_open(&o.state, o.state_path));
        PM_TRY(put_state(&o, name));
    }
    PM_TRY(put_tensors(&o, order, count));
    PM_TRY(give_names(&o, state));
out:
    pm_new_file_abandon(&o.data);
    pm_new_file_abandon(&o.index);
    pm_new_file_abandon(&o.state);
    pm_tf_table_free(&o.table);
    pm_free(o.data_path);
    pm_free(o.index_path);
    pm_free(o.state_path);
    pm_free(order);
    return err;
}
