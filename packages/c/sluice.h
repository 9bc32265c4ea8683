/*
 * The core of the Sluice gateway in C: masks prompts, counts tokens, limits rates, matches routes and reads HTTP/1.1
 * heads, with the same results as the gateway. Compile sluice.c, sluice-core.c and sluice-texts.c with your program.
 *
 * An instance must be used by one thread at a time; instances share nothing. Results below 0 are codes, SLUICE_*.
 * Texts are UTF-8.
 */
#ifndef SLUICE_H
#define SLUICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What an instance can do. Masks and patterns are in both. */
typedef enum {
  SLUICE_CORE, /* Tokens, rates, routes, HTTP heads and chunked bodies. */
  SLUICE_TEXTS /* Texts of requests to models and of their answers: guards_* and texts_*. */
} sluice_module;

typedef struct sluice sluice;

enum {
  /* The instance has failed, or its module has no such function. Close it and open another one. */
  SLUICE_TRAPPED = INT32_MIN
};

/* Opens an instance, which has its own memory. Returns NULL if there is no memory. */
sluice *sluice_open(sluice_module module);

/* Frees an instance with everything in it. */
void sluice_close(sluice *core);

/* Whether the instance has failed, which would be a bug of the core. All its calls return SLUICE_TRAPPED, or 0. */
bool sluice_has_trapped(const sluice *core);

/* Bytes of the instance's memory, until the next call. Returns NULL if the memory does not have them. */
uint8_t *sluice_memory(sluice *core, uint32_t address, size_t length);

/* Copies bytes to scratch memory, which sluice_reset frees. Returns their address, or 0 if there is no room. */
uint32_t sluice_put(sluice *core, const void *bytes, size_t length);

/*
 * Compiles a regular expression in RE2 syntax. Returns a handle for the functions sluice_regex_*, or a code;
 * sluice_last_error_offset returns the position of the error.
 */
int32_t sluice_compile(sluice *core, const char *pattern, int32_t flags);

/* Adds a detector (SLUICE_DETECT_*) to a mask of sluice_mask_new. Of overlapping matches, earlier rules win. */
int32_t sluice_add_builtin(sluice *core, int32_t mask, int32_t builtin, const char *replacement);

/*
 * Adds words and names to a mask, one a line: at most 10,000 of 256 bytes. They match as a whole, in upper or lower case.
 */
int32_t sluice_add_words(sluice *core, int32_t mask, const char *words, const char *replacement);

/* Adds a regular expression to a mask. */
int32_t sluice_add_pattern(sluice *core, int32_t mask, const char *pattern, const char *replacement);

/*
 * Masks a text. The result ends with a zero byte and is freed by free. Returns NULL if the text cannot be masked; then
 * it must not pass.
 */
char *sluice_mask(sluice *core, int32_t mask, const void *text, size_t length, size_t *masked_length);

/*
 * Masks the next piece of a text, for a stream of sluice_stream_new. Returns how many bytes `masked` has until the next
 * call, or a code, after which the text must not pass. What comes out does not depend on where the text is cut.
 */
int32_t sluice_push(sluice *core, int32_t stream, const void *piece, size_t length, bool is_end, const char **masked);

/* Loads a vocabulary, such as the file o200k_base.tokens. Returns a handle or a code. */
int32_t sluice_load_vocabulary(sluice *core, const void *bytes, size_t length);

/* Loads a vocabulary from a file. Returns SLUICE_ERROR_UNKNOWN if it cannot be read. */
int32_t sluice_open_vocabulary(sluice *core, const char *path);

/* Counts the tokens of a text, as tiktoken does without special tokens. */
int32_t sluice_count_tokens(sluice *core, int32_t vocabulary, const void *text, size_t length);

typedef struct {
  double wait;      /* Milliseconds until the amount is there; infinite if it never is. */
  double remaining; /* Whole units that are left. */
  double reset;     /* Milliseconds until the bucket is full. */
} sluice_rate;

/*
 * Allocates a table of buckets: 32 for each group, of which half should stay free. `groups` is a power of two, keys have
 * at most `key_bytes` bytes, and `secret` is random. Returns its address, or 0 if there is no room.
 */
uint32_t sluice_rate_table(sluice *core, int32_t groups, int32_t key_bytes, const uint8_t secret[16]);

/*
 * Takes `amount` units from the bucket of a key, which has at most `capacity` units and gets one back every `period`
 * milliseconds. `now` is a monotonic clock in milliseconds. Returns 1 if admitted, 0 if refused, or a code. `rate` may
 * be NULL.
 */
int32_t sluice_take(sluice *core, uint32_t table, const char *key, double period, double capacity, double amount,
                    double now, sluice_rate *rate);

/* Constants of the ABI. */
enum {
@CONSTANTS@
};

/*
 * Every function of the modules, as docs/embedding.md describes them. An address is an offset in the memory of the
 * instance (sluice_memory). A function that the module of an instance does not have returns SLUICE_TRAPPED, or 0 as an
 * address.
 */
@FUNCTIONS@

#ifdef __cplusplus
}
#endif

#endif
