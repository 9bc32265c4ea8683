/* The functions that the library adds to the ABI. Exits with 1 and the line of the first failure. */
#include "sluice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                        \
  do {                                                          \
    if (!(condition)) {                                         \
      fprintf(stderr, "line %d: %s\n", __LINE__, #condition);   \
      exit(1);                                                  \
    }                                                           \
  } while (0)

static void check_masks(sluice *core) {
  int32_t mask = sluice_mask_new(core);
  CHECK(sluice_add_builtin(core, mask, SLUICE_DETECT_EMAIL, "<EMAIL>") >= 0);
  CHECK(sluice_add_pattern(core, mask, "sk-[a-z0-9]{8,}", "<KEY>") >= 0);
  CHECK(sluice_add_pattern(core, mask, "a(", "") == SLUICE_REGEX_UNBALANCED_PAREN);
  CHECK(sluice_last_error_offset(core) >= 0);

  size_t length, size = 300000;
  char *text = malloc(size + 1), *masked;
  CHECK(text != NULL);
  memset(text, '-', size);
  /* Over the end of the first piece. */
  memcpy(text + 65530, " ada@example.com ", 17);
  masked = sluice_mask(core, mask, text, size, &length);
  CHECK(masked != NULL && length == size - 15 + 7 && strlen(masked) == length);
  CHECK(memcmp(masked + 65530, " <EMAIL> -", 10) == 0);
  free(masked);
  free(text);
  masked = sluice_mask(core, mask, "", 0, NULL);
  CHECK(masked != NULL && *masked == '\0');
  free(masked);
  CHECK(sluice_mask(core, mask + 1, "text", 4, NULL) == NULL);

  const char *out;
  int32_t stream = sluice_stream_new(core, mask);
  CHECK(sluice_push(core, stream, "write to ada@exam", 17, false, &out) == 9);
  CHECK(memcmp(out, "write to ", 9) == 0);
  CHECK(sluice_push(core, stream, "ple.com today", 13, true, &out) == 13);
  CHECK(memcmp(out, "<EMAIL> today", 13) == 0);
  sluice_stream_free(core, stream);
  CHECK(sluice_push(core, stream, "text", 4, true, &out) < 0 && out == NULL);
  sluice_mask_free(core, mask);
}

static void check_tokens(sluice *core) {
  int32_t vocabulary = sluice_open_vocabulary(core, "o200k_base.tokens");
  CHECK(vocabulary > 0 && sluice_count_tokens(core, vocabulary, "hello world", 11) == 2);
  CHECK(sluice_open_vocabulary(core, "absent.tokens") == SLUICE_ERROR_UNKNOWN);
  CHECK(sluice_load_vocabulary(core, "no vocabulary", 13) == SLUICE_TOKENS_BAD_VOCABULARY);
}

static void check_rates(sluice *core) {
  static const uint8_t secret[16] = {1, 2, 3};
  uint32_t table = sluice_rate_table(core, 4, 32, secret);
  CHECK(table != 0 && sluice_rate_table(core, 3, 32, secret) == 0);
  sluice_rate rate;
  CHECK(sluice_take(core, table, "tenant", 100, 2, 2, 1000, &rate) == 1 && rate.remaining == 0 && rate.reset == 200);
  CHECK(sluice_take(core, table, "tenant", 100, 2, 1, 1050, &rate) == 0 && rate.wait == 50);
  CHECK(sluice_take(core, table, "other", 100, 2, 1, 1050, NULL) == 1);
}

static void check_failures(sluice *core) {
  sluice *texts = sluice_open(SLUICE_TEXTS);
  CHECK(texts != NULL && sluice_tokens_load(texts, 16, 16) == SLUICE_TRAPPED && !sluice_has_trapped(texts));
  CHECK(sluice_guards_new(core) == SLUICE_TRAPPED && sluice_guards_new(texts) > 0);
  sluice_close(texts);

  CHECK(sluice_memory(core, 0, 65536) != NULL);
  CHECK(sluice_memory(core, 0xffffffff, 2) == NULL && sluice_memory(core, 16, SIZE_MAX) == NULL);
  /* Memory that is not scratch memory, and not memory at all: the instance is lost, the program is not. */
  sluice_copy(core, 0xfffffff0, 0xffffff00, 16);
  CHECK(sluice_has_trapped(core) && sluice_mask_new(core) == SLUICE_TRAPPED && sluice_alloc(core, 16) == 0);
}

int main(void) {
  sluice *core = sluice_open(SLUICE_CORE);
  CHECK(core != NULL);
  check_masks(core);
  check_tokens(core);
  check_rates(core);
  check_failures(core);
  sluice_close(core);
  sluice_close(NULL);
  return 0;
}
