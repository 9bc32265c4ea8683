#include "sluice.h"

#include <stdio.h>

#include "sluice-core.h"
#include "sluice-texts.h"

struct sluice {
  sluice_module module;
  bool has_trapped;
  union {
    w2c_core core;
    w2c_texts texts;
  };
};

_Thread_local uint32_t wasm_rt_call_stack_depth;
static _Thread_local jmp_buf *trap_target;

void wasm_rt_trap(wasm_rt_trap_t reason) {
  if (trap_target != NULL) longjmp(*trap_target, reason);
  abort();
}

void wasm_rt_allocate_memory(wasm_rt_memory_t *memory, uint64_t pages, uint64_t max_pages, bool is64, uint32_t page_size) {
  (void)is64, (void)page_size;
  uint8_t *data = calloc(pages, 65536);
  if (data == NULL) wasm_rt_trap(WASM_RT_TRAP_OOB);
  *memory = (wasm_rt_memory_t){data, pages, max_pages, pages * 65536};
}

uint64_t wasm_rt_grow_memory(wasm_rt_memory_t *memory, uint64_t delta) {
  uint64_t before = memory->pages;
  if (delta > memory->max_pages - before || (before + delta) * 65536 > SIZE_MAX) return UINT32_MAX;
  if (delta == 0) return before;
  uint8_t *data = realloc(memory->data, (before + delta) * 65536);
  if (data == NULL) return UINT32_MAX;
  memset(data + before * 65536, 0, delta * 65536);
  *memory = (wasm_rt_memory_t){data, before + delta, memory->max_pages, (before + delta) * 65536};
  return before;
}

void wasm_rt_free_memory(wasm_rt_memory_t *memory) { free(memory->data); }

static wasm_rt_memory_t *memory_of(sluice *core) {
  return core->module == SLUICE_TEXTS ? w2c_texts_memory(&core->texts) : w2c_core_memory(&core->core);
}

/*
 * Runs `call`, which may trap. After a trap, the memory of the instance cannot be trusted: every call fails. The modules
 * import nothing, so calls are never nested.
 */
#define GUARDED(core, call)                 \
  do {                                      \
    if ((core)->has_trapped) break;         \
    jmp_buf target;                         \
    wasm_rt_call_stack_depth = 0;           \
    trap_target = &target;                  \
    if (setjmp(target) == 0) {              \
      call;                                 \
    } else {                                \
      (core)->has_trapped = true;           \
    }                                       \
    trap_target = NULL;                     \
  } while (0)

static void instantiate(sluice *core) {
  if (core->module == SLUICE_TEXTS) {
    GUARDED(core, wasm2c_texts_instantiate(&core->texts));
  } else {
    GUARDED(core, wasm2c_core_instantiate(&core->core));
  }
}

sluice *sluice_open(sluice_module module) {
  sluice *core = calloc(1, sizeof *core);
  if (core == NULL) return NULL;
  core->module = module;
  instantiate(core);
  if (!core->has_trapped && sluice_abi_version(core) == SLUICE_ABI_VERSION) return core;
  sluice_close(core);
  return NULL;
}

void sluice_close(sluice *core) {
  if (core == NULL) return;
  wasm_rt_free_memory(memory_of(core));
  free(core);
}

bool sluice_has_trapped(const sluice *core) { return core->has_trapped; }

uint8_t *sluice_memory(sluice *core, uint32_t address, size_t length) {
  wasm_rt_memory_t *memory = memory_of(core);
  if (address > memory->size || length > memory->size - address) return NULL;
  return memory->data + address;
}

uint32_t sluice_put(sluice *core, const void *bytes, size_t length) {
  if (length > INT32_MAX - 16) return 0;
  uint32_t address = sluice_alloc(core, (int32_t)length + 16);
  uint8_t *to = address == 0 ? NULL : sluice_memory(core, address, length);
  if (to == NULL) return 0;
  if (length > 0) memcpy(to, bytes, length);
  return address;
}

int32_t sluice_compile(sluice *core, const char *pattern, int32_t flags) {
  uint32_t place = sluice_mark(core);
  uint32_t source = sluice_put(core, pattern, strlen(pattern));
  int32_t regex = source == 0 ? SLUICE_ERROR_MEMORY : sluice_regex_compile(core, source, (int32_t)strlen(pattern), flags);
  sluice_reset(core, place);
  return regex;
}

int32_t sluice_add_builtin(sluice *core, int32_t mask, int32_t builtin, const char *replacement) {
  uint32_t place = sluice_mark(core);
  uint32_t text = sluice_put(core, replacement, strlen(replacement));
  int32_t code = text == 0 ? SLUICE_ERROR_MEMORY
                           : sluice_mask_add_builtin(core, mask, builtin, text, (int32_t)strlen(replacement));
  sluice_reset(core, place);
  return code;
}

int32_t sluice_add_words(sluice *core, int32_t mask, const char *words, const char *replacement) {
  uint32_t place = sluice_mark(core);
  uint32_t list = sluice_put(core, words, strlen(words));
  uint32_t text = list == 0 ? 0 : sluice_put(core, replacement, strlen(replacement));
  int32_t code = text == 0 ? SLUICE_ERROR_MEMORY
                           : sluice_mask_add_words(core, mask, list, (int32_t)strlen(words), text,
                                                   (int32_t)strlen(replacement));
  sluice_reset(core, place);
  return code;
}

int32_t sluice_add_pattern(sluice *core, int32_t mask, const char *pattern, const char *replacement) {
  int32_t regex = sluice_compile(core, pattern, 0);
  if (regex < 0) return regex;
  uint32_t place = sluice_mark(core);
  uint32_t text = sluice_put(core, replacement, strlen(replacement));
  int32_t code =
      text == 0 ? SLUICE_ERROR_MEMORY : sluice_mask_add(core, mask, regex, text, (int32_t)strlen(replacement));
  sluice_reset(core, place);
  /* The mask has its own reference to the pattern. */
  sluice_regex_free(core, regex);
  return code;
}

int32_t sluice_push(sluice *core, int32_t stream, const void *piece, size_t length, bool is_end, const char **masked) {
  *masked = NULL;
  uint32_t place = sluice_mark(core);
  uint32_t text = sluice_put(core, piece, length);
  int32_t count = text == 0 ? SLUICE_ERROR_MEMORY : sluice_stream_push(core, stream, text, (int32_t)length, is_end);
  sluice_reset(core, place);
  if (count < 0) return count;
  *masked = (const char *)sluice_memory(core, sluice_stream_output(core, stream), (size_t)count);
  return *masked == NULL ? SLUICE_TRAPPED : count;
}

char *sluice_mask(sluice *core, int32_t mask, const void *text, size_t length, size_t *masked_length) {
  enum { piece_size = 65536 };
  const char *rest = text, *piece;
  char *masked = NULL;
  size_t size = 0;
  int32_t stream = sluice_stream_new(core, mask), count;
  if (stream < 0) return NULL;
  for (bool is_end = false; !is_end;) {
    size_t next = length < piece_size ? length : piece_size;
    is_end = next == length;
    count = sluice_push(core, stream, rest, next, is_end, &piece);
    char *longer = count < 0 ? NULL : realloc(masked, size + (size_t)count + 1);
    if (longer == NULL) {
      free(masked);
      masked = NULL;
      break;
    }
    masked = longer;
    memcpy(masked + size, piece, (size_t)count);
    size += (size_t)count;
    masked[size] = '\0';
    rest += next;
    length -= next;
  }
  sluice_stream_free(core, stream);
  if (masked_length != NULL) *masked_length = masked == NULL ? 0 : size;
  return masked;
}

int32_t sluice_load_vocabulary(sluice *core, const void *bytes, size_t length) {
  if (length > INT32_MAX - 16) return SLUICE_ERROR_ARGUMENT;
  uint32_t block = sluice_block_new(core, (int32_t)length + 16);
  uint8_t *to = block == 0 ? NULL : sluice_memory(core, block, length);
  if (to == NULL) return SLUICE_ERROR_MEMORY;
  memcpy(to, bytes, length);
  int32_t vocabulary = sluice_tokens_load(core, block, (int32_t)length);
  sluice_block_free(core, block);
  return vocabulary;
}

int32_t sluice_open_vocabulary(sluice *core, const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) return SLUICE_ERROR_UNKNOWN;
  int32_t vocabulary = SLUICE_ERROR_UNKNOWN;
  long length = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
  char *bytes = length > 0 && fseek(file, 0, SEEK_SET) == 0 ? malloc((size_t)length) : NULL;
  if (bytes != NULL && fread(bytes, 1, (size_t)length, file) == (size_t)length) {
    vocabulary = sluice_load_vocabulary(core, bytes, (size_t)length);
  }
  free(bytes);
  fclose(file);
  return vocabulary;
}

int32_t sluice_count_tokens(sluice *core, int32_t vocabulary, const void *text, size_t length) {
  uint32_t place = sluice_mark(core);
  uint32_t address = sluice_put(core, text, length);
  int32_t count = address == 0 ? SLUICE_ERROR_MEMORY : sluice_tokens_count(core, vocabulary, address, (int32_t)length);
  sluice_reset(core, place);
  return count;
}

uint32_t sluice_rate_table(sluice *core, int32_t groups, int32_t key_bytes, const uint8_t secret[16]) {
  int32_t size = sluice_rate_size(core, groups, key_bytes);
  uint32_t table = size <= 0 ? 0 : sluice_block_new(core, size);
  if (table == 0) return 0;
  uint32_t place = sluice_mark(core);
  uint32_t address = sluice_put(core, secret, 16);
  int32_t code = address == 0 ? SLUICE_ERROR_MEMORY : sluice_rate_format(core, table, groups, key_bytes, address);
  sluice_reset(core, place);
  if (code >= 0) return table;
  sluice_block_free(core, table);
  return 0;
}

int32_t sluice_take(sluice *core, uint32_t table, const char *key, double period, double capacity, double amount,
                    double now, sluice_rate *rate) {
  uint32_t place = sluice_mark(core);
  uint32_t text = sluice_put(core, key, strlen(key));
  uint32_t out = sluice_alloc(core, SLUICE_RATE_SIZE);
  int32_t code = SLUICE_ERROR_MEMORY;
  if (text != 0 && out != 0) {
    code = sluice_rate_take(core, table, 0, text, (int32_t)strlen(key), period, capacity, amount, now, out);
  }
  uint8_t *record = code < 0 || rate == NULL ? NULL : sluice_memory(core, out, SLUICE_RATE_SIZE);
  if (record != NULL) {
    memcpy(&rate->wait, record + SLUICE_RATE_WAIT, sizeof(double));
    memcpy(&rate->remaining, record + SLUICE_RATE_REMAINING, sizeof(double));
    memcpy(&rate->reset, record + SLUICE_RATE_RESET, sizeof(double));
  }
  sluice_reset(core, place);
  return code;
}
