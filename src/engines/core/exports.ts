/**
 * Functions for rate limits that core.wasm and core-rate-shared.wasm export. `assembly/core.abi.json`
 * documents each of them. `period`, `now` and the times of the record are in milliseconds.
 */
export interface RateExports {
  rate_size(groups: number, keyBytes: number): number
  rate_format(table: number, groups: number, keyBytes: number, secret: number): number
  rate_owner(number: number): number
  rate_release(table: number, dead: number): number
  rate_take: RateDemand
  rate_peek: RateDemand
  rate_charge: RateDemand
  rate_cell(table: number, id: number, now: number): number
  rate_take_at(
    cell: number,
    id: number,
    period: number,
    capacity: number,
    amount: number,
    now: number,
    out: number,
  ): number
  rate_reap(table: number, now: number): number
  rate_count(table: number): number
  rate_rescale(table: number, id: number, ratio: number, now: number): number
  rate_move(from: number, to: number, now: number): number
}

export type RateDemand = (
  table: number,
  id: number,
  key: number,
  length: number,
  period: number,
  capacity: number,
  amount: number,
  now: number,
  out: number,
) => number

/** The exports of core-rate-shared.wasm, which imports its memory. */
export interface SharedRateExports extends RateExports {
  abi_version(): number
  features(): number
  last_error(): number
}

/**
 * The exports of core.wasm. `assembly/core.abi.json`, which is generated from the module's sources,
 * documents each of them; a test compares the names. Addresses above 2^31 are returned as negative
 * numbers: convert them with `>>> 0`.
 */
export interface CoreExports extends RateExports {
  readonly memory: WebAssembly.Memory

  abi_version(): number
  features(): number
  last_error(): number
  last_error_offset(): number

  alloc(size: number): number
  mark(): number
  reset(place: number): void
  block_new(size: number): number
  block_free(block: number): void
  copy(to: number, from: number, size: number): void
  reserve(pages: number): number
  seal(): void
  untouched(): number

  head_request(record: number, start: number, end: number, resume: number, maxBytes: number): number
  head_response(
    record: number,
    start: number,
    end: number,
    resume: number,
    maxBytes: number,
  ): number
  head_trailers(record: number, start: number, end: number): number
  chunks_start(body: number, trailerLimit: number): number
  chunks_read(body: number, start: number, end: number): number

  digest_fields(bytes: number, spans: number, count: number, key: number, out: number): void

  table_new(): number
  table_free(table: number): number
  listener_add(table: number, kind: number, host: number, length: number, scope: number): number
  listener_remove(table: number, kind: number, host: number, length: number): number
  route_add(table: number, spec: number, size: number): number
  route_remove(table: number, id: number): number
  route_count(table: number): number
  match_listener(table: number, record: number): number
  match_route(table: number, scope: number, record: number): number
  match_request(table: number, record: number): number

  regex_compile(pattern: number, length: number, flags: number): number
  regex_free(handle: number): void
  regex_is_match(handle: number, text: number, length: number): number
  regex_full_match(handle: number, text: number, length: number): number
  regex_find(handle: number, text: number, length: number, from: number, out: number): number
  regex_find_all(
    handle: number,
    text: number,
    length: number,
    from: number,
    out: number,
    limit: number,
  ): number
  regex_work(): number
  regex_hold(handle: number): number

  mask_new(): number
  mask_free(set: number): void
  mask_add(set: number, regex: number, text: number, length: number): number
  mask_add_builtin(set: number, builtin: number, text: number, length: number): number
  mask_add_words(
    set: number,
    words: number,
    wordsLength: number,
    text: number,
    length: number,
  ): number
  mask_hold(set: number): number
  stream_new(set: number): number
  stream_free(stream: number): void
  stream_reset(stream: number): number
  stream_push(stream: number, text: number, length: number, isEnd: number): number
  stream_output(stream: number): number
  stream_edits(stream: number): number
  stream_edit_count(stream: number): number
  stream_held(stream: number): number
  stream_count(stream: number): number

  tokens_load(file: number, length: number): number
  tokens_image(handle: number): number
  tokens_adopt(block: number, length: number): number
  tokens_free(handle: number): number
  tokens_count(handle: number, text: number, length: number): number
  tokens_encode(handle: number, text: number, length: number, out: number, max: number): number
  tokens_work(): number
}

/** The exports that core-texts.wasm has besides those for memory, patterns and masks of core.wasm. */
export interface TextsExports extends CoreExports {
  guards_new(): number
  guards_add(guards: number, set: number, rejects: number): number
  guards_free(guards: number): void
  texts_new(guards: number, format: number, kind: number, limit: number): number
  texts_free(texts: number): void
  texts_push(texts: number, bytes: number, length: number, isEnd: number): number
  texts_output(texts: number): number
  texts_fail(texts: number, status: number, message: number, length: number): number
  texts_record(texts: number, record: number): number
  texts_count(texts: number, guard: number): number
  texts_matches(texts: number, guard: number): number
  texts_match_list(texts: number, guard: number): number
  texts_hold(texts: number, limit: number): number
}
