/* Pipes, devices and sockets in place of files: every command refuses them with one line, and
 * none waits. */
#include "e2e/program.h"

#include <sys/socket.h>
#include <sys/un.h>

/* The command must end with this code and reason. A command that waits is killed by timeout,
 * with exit code 124. */
PM_PRINTF(3, 4) static void refuses(int code, const char *why, const char *format, ...)
{
    const struct how limited = { .environment = "timeout 20" };
    char arguments[2048];
    va_list ap;

    va_start(ap, format);
    vsnprintf(arguments, sizeof arguments, format, ap);
    va_end(ap);
    check(run(&limited, "%s", arguments), code, why);
}

static void put_pipe(const char *path)
{
    unlink(path);
    if (mkfifo(path, 0600) != 0)
        fail_msg("%s: no pipe", path);
}

static void configs(void **state)
{
    (void)state;
    put_pipe(in("pipe"));
    refuses(2, "pipe: is a pipe; a regular file is needed", "config check %s", in("pipe"));
    put_text(in("based.json"), "{ \"base\": \"pipe\" }");
    refuses(2, "pipe: is a pipe", "train %s", in("based.json"));
    put_text(in("based.json"), "{ \"base\": \"/dev/zero\" }");
    refuses(2, "/dev/zero: is a device; a regular file is needed", "train %s", in("based.json"));
}

static void checkpoints(void **state)
{
    const struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct sockaddr_un at = address;
    const int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)state;
    snprintf(at.sun_path, sizeof at.sun_path, "%s", in("socket"));
    assert_int_equal(bind(s, (struct sockaddr *)&at, sizeof at), 0);
    refuses(3, "pipe: is a pipe", "checkpoint inspect %s", in("pipe"));
    refuses(3, "/dev/zero: is a device", "checkpoint inspect /dev/zero");
    refuses(3, "socket: is a socket", "checkpoint inspect %s", in("socket"));
    refuses(3, "pipe: is a pipe", "checkpoint convert %s %s", in("pipe"), in("x.safetensors"));
    refuses(3, "pipe: is a pipe", "train %s run.folder=%s init.checkpoint=%s", in("net.json"),
            in("never"), in("pipe"));
    close(s);
}

/* A TensorFlow checkpoint whose data file is a pipe, and a run whose checkpoint is a pipe. */
static void parts_of_checkpoints(void **state)
{
    (void)state;
    check(run(NULL, "train %s run.folder=%s", in("net.json"), in("run")), 0);
    check(run(NULL, "checkpoint convert %s %s", in("run"), in("model.ckpt")), 0);
    put_pipe(in("model.ckpt.data-00000-of-00001"));
    refuses(3, "data-00000-of-00001: is a pipe", "checkpoint inspect %s", in("model.ckpt"));
    put_pipe(in("run/checkpoints/step-3.json"));
    refuses(0, "", "report %s", in("run"));
    put_pipe(in("run/log.txt"));
    put_pipe(in("run/metrics.jsonl"));
    put_pipe(in("run/run.json"));
    put_pipe(in("run/evaluation.json"));
    refuses(0, "", "report %s", in("run"));
}

/* An exported model whose weights file is a pipe. */
static void external_data(void **state)
{
    struct pm_arena *a = pm_arena_create();
    char **files = NULL;
    size_t count = 0;

    (void)state;
    check(run(NULL, "train %s run.folder=%s model.layers.0.filters=64", in("net.json"), in("run2")),
          0);
    check(run(NULL, "export %s %s run.folder=%s model.layers.0.filters=64 export.weights=beside",
              in("net.json"), in("model.onnx"), in("run2")), 0);
    assert_int_equal(pm_glob(a, in("model.onnx*data*"), &files, &count), PM_OK);
    assert_int_equal(count, 1);
    put_pipe(files[0]);
    refuses(3, "is a pipe", "checkpoint inspect %s", in("model.onnx"));
    pm_arena_destroy(&a);
}

static void data(void **state)
{
    struct pm_arena *a = pm_arena_create();
    char **shards = NULL;
    size_t count = 0;

    (void)state;
    assert_int_equal(pm_glob(a, in("data/*train*"), &shards, &count), PM_OK);
    assert_true(count > 0);
    refuses(3, "1 of 1 files could not be read",
            "predict %s %s run.folder=%s model.layers.0.filters=64", in("net.json"), in("pipe"),
            in("run2"));
    put_pipe(shards[0]);
    refuses(3, "a regular file is needed", "train %s run.folder=%s", in("net.json"), in("never"));
    put_pipe(in("data/labels.txt"));
    refuses(3, "labels.txt: is a pipe", "dataset inspect %s", in("data"));
    pm_arena_destroy(&a);
}

static void sources(void **state)
{
    (void)state;
    assert_int_equal(mkdir(in("digits"), 0755), 0);
    put_pipe(in("digits/train-images-idx3-ubyte"));
    put_text(in("digits/train-labels-idx1-ubyte"), "x");
    put_text(in("digits/t10k-images-idx3-ubyte"), "x");
    put_text(in("digits/t10k-labels-idx1-ubyte"), "x");
    refuses(3, "ubyte: is a pipe", "dataset convert mnist %s %s", in("digits"), in("made"));
    assert_int_equal(pm_make_folders(in("photos/a")), 0);
    put_pipe(in("photos/a/1.png"));
    put_pipe(in("photos/a/2.png"));
    refuses(3, "none of the 2 examples of split train could be written",
            "dataset convert folder %s %s validation=0", in("photos"), in("made"));
    assert_int_equal(pm_make_folders(in("photos/train/a")), 0);
    put_pipe(in("names.txt"));
    refuses(3, "names.txt: is a pipe", "dataset convert build_image_data %s %s labels_file=%s",
            in("photos"), in("made"), in("names.txt"));
    assert_false(pm_is_folder(in("made")));
}

static int set_up(void **state)
{
    (void)state;
    return make_world(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configs), cmocka_unit_test(checkpoints),
        cmocka_unit_test(parts_of_checkpoints), cmocka_unit_test(external_data),
        cmocka_unit_test(data), cmocka_unit_test(sources),
    };

    return cmocka_run_group_tests(tests, set_up, drop_world);
}
