/** What a route asks of a request beyond host and path: method, header fields, query parameters. */
import {
  FIELD_NAME,
  FIELD_SIZE,
  FIELD_VALUE,
  HEAD_AUTHORITY,
  HEAD_FIELDS,
  HEAD_FIELD_COUNT,
  HEAD_HOST,
  HEAD_METHOD,
  HEAD_PATH,
  HEAD_QUERY,
  HOST_LIMIT,
  PREDICATE_EXACT,
  PREDICATE_KIND,
  PREDICATE_NAME,
  PREDICATE_REGEX,
  PREDICATE_SIZE,
  PREDICATE_VALUE,
  ROUTE_FIELD_COUNT,
  ROUTE_METHOD,
  ROUTE_PREDICATES,
  ROUTE_QUERY_COUNT,
} from '../abi'
import { foldInPlace, isEqual, isEqualFolded } from '../bytes'
import { isPatternMatch } from './pattern'
import { isQueryEqual, isQueryMatch } from './query'

/** Where a header predicate's value comes from: kept above the low byte of PREDICATE_KIND. */
const FROM_FIELDS: i32 = 0
const FROM_METHOD: i32 = 1 << 8
const FROM_PATH: i32 = 2 << 8
const FROM_AUTHORITY: i32 = 3 << 8
const FROM_MASK: i32 = 0xff00

/** `:path`, `:method`, `host`, `:authority` */
const PATH_NAME: usize = memory.data<u8>([58, 112, 97, 116, 104])
const METHOD_NAME: usize = memory.data<u8>([58, 109, 101, 116, 104, 111, 100])
const HOST_NAME: usize = memory.data<u8>([104, 111, 115, 116])
const AUTHORITY_NAME: usize = memory.data<u8>([58, 97, 117, 116, 104, 111, 114, 105, 116, 121])

function sourceOf(name: usize, length: usize): i32 {
  switch (<i32>length) {
    case 4:
      return isEqual(name, HOST_NAME, 4) ? FROM_AUTHORITY : FROM_FIELDS
    case 5:
      return isEqual(name, PATH_NAME, 5) ? FROM_PATH : FROM_FIELDS
    case 7:
      return isEqual(name, METHOD_NAME, 7) ? FROM_METHOD : FROM_FIELDS
    case 10:
      return isEqual(name, AUTHORITY_NAME, 10) ? FROM_AUTHORITY : FROM_FIELDS
    default:
      return FROM_FIELDS
  }
}

/** Readies the header predicates of a route's own copy: names in lower case, sources resolved. */
export function prepareFields(spec: usize): void {
  const count = load<i32>(spec + ROUTE_FIELD_COUNT)
  let predicate = spec + ROUTE_PREDICATES
  for (let i = 0; i < count; i++, predicate += PREDICATE_SIZE) {
    const name = spec + <usize>load<u32>(predicate + PREDICATE_NAME)
    const length = <usize>load<u32>(predicate + PREDICATE_NAME, 4)
    foldInPlace(name, length)
    const kind = load<i32>(predicate + PREDICATE_KIND) & 0xff
    store<i32>(predicate + PREDICATE_KIND, kind | sourceOf(name, length))
  }
}

/** Does the value satisfy an exact or regex predicate? */
function isValueMatch(spec: usize, predicate: usize, start: usize, end: usize): bool {
  if ((load<i32>(predicate + PREDICATE_KIND) & 0xff) == PREDICATE_EXACT) {
    const length = <usize>load<u32>(predicate + PREDICATE_VALUE, 4)
    const bytes = spec + <usize>load<u32>(predicate + PREDICATE_VALUE)
    return end - start == length && isEqual(start, bytes, length)
  }
  return isPatternMatch(load<i32>(predicate + PREDICATE_REGEX), start, end - start)
}

function isSpanMatch(spec: usize, predicate: usize, span: usize): bool {
  if (load<i32>(span) < 0) return false
  return isValueMatch(spec, predicate, <usize>load<u32>(span), <usize>load<u32>(span, 4))
}

/** Path and query together: they stand side by side in every target. */
function isTargetMatch(spec: usize, predicate: usize, record: usize): bool {
  const start = <usize>load<u32>(record + HEAD_PATH)
  const hasQuery = load<i32>(record + HEAD_QUERY) >= 0
  const end = <usize>load<u32>(record + (hasQuery ? HEAD_QUERY : HEAD_PATH), 4)
  return isValueMatch(spec, predicate, start, end)
}

/** host[:port] without the dot of an absolute name */
const AUTHORITY: usize = memory.data(264)

/**
 * The authority names the same host with and without the dot that ends an absolute name, which HOST
 * leaves out: so it does here.
 */
function isAuthorityMatch(spec: usize, predicate: usize, record: usize): bool {
  const span = record + HEAD_AUTHORITY
  if (load<i32>(span) < 0) return false
  const start = <usize>load<u32>(span)
  const end = <usize>load<u32>(span, 4)
  const stop = <usize>load<u32>(record + HEAD_HOST, 4)
  const hasDot = stop > start && stop < end && load<u8>(stop) == 0x2e
  if (!hasDot || end - start > <usize>HOST_LIMIT) return isValueMatch(spec, predicate, start, end)
  memory.copy(AUTHORITY, start, stop - start)
  memory.copy(AUTHORITY + (stop - start), stop + 1, end - stop - 1)
  return isValueMatch(spec, predicate, AUTHORITY, AUTHORITY + (end - start - 1))
}

/** Any one of repeated fields may match; commas are not split. */
function isAnyFieldMatch(spec: usize, predicate: usize, record: usize): bool {
  const name = spec + <usize>load<u32>(predicate + PREDICATE_NAME)
  const length = <usize>load<u32>(predicate + PREDICATE_NAME, 4)
  const count = load<i32>(record + HEAD_FIELD_COUNT)
  let field = record + HEAD_FIELDS
  for (let i = 0; i < count; i++, field += FIELD_SIZE) {
    const start = <usize>load<u32>(field + FIELD_NAME)
    if (<usize>load<u32>(field + FIELD_NAME, 4) - start != length) continue
    if (isEqualFolded(start, name, length) && isSpanMatch(spec, predicate, field + FIELD_VALUE)) {
      return true
    }
  }
  return false
}

function isFieldPredicateMet(spec: usize, predicate: usize, record: usize): bool {
  switch (load<i32>(predicate + PREDICATE_KIND) & FROM_MASK) {
    case FROM_METHOD:
      return isSpanMatch(spec, predicate, record + HEAD_METHOD)
    case FROM_PATH:
      return isTargetMatch(spec, predicate, record)
    case FROM_AUTHORITY:
      return isAuthorityMatch(spec, predicate, record)
    default:
      return isAnyFieldMatch(spec, predicate, record)
  }
}

function isQueryPredicateMet(spec: usize, predicate: usize, record: usize): bool {
  if (load<i32>(record + HEAD_QUERY) < 0) return false
  const start = <usize>load<u32>(record + HEAD_QUERY)
  const end = <usize>load<u32>(record + HEAD_QUERY, 4)
  const name = spec + <usize>load<u32>(predicate + PREDICATE_NAME)
  const length = <usize>load<u32>(predicate + PREDICATE_NAME, 4)
  if (load<i32>(predicate + PREDICATE_KIND) == PREDICATE_EXACT) {
    const value = spec + <usize>load<u32>(predicate + PREDICATE_VALUE)
    return isQueryEqual(
      start, end, name, length, value, <usize>load<u32>(predicate + PREDICATE_VALUE, 4),
    )
  }
  return isQueryMatch(start, end, name, length, load<i32>(predicate + PREDICATE_REGEX))
}

/** Are method, header and query predicates of a route all met? */
export function isMet(spec: usize, record: usize): bool {
  const methodLength = <usize>load<u32>(spec + ROUTE_METHOD, 4)
  if (methodLength != 0) {
    const start = <usize>load<u32>(record + HEAD_METHOD)
    const length = <usize>load<u32>(record + HEAD_METHOD, 4) - start
    const method = spec + <usize>load<u32>(spec + ROUTE_METHOD)
    if (length != methodLength || !isEqual(start, method, length)) return false
  }
  let predicate = spec + ROUTE_PREDICATES
  for (let left = load<i32>(spec + ROUTE_FIELD_COUNT); left > 0; left--) {
    if (!isFieldPredicateMet(spec, predicate, record)) return false
    predicate += PREDICATE_SIZE
  }
  for (let left = load<i32>(spec + ROUTE_QUERY_COUNT); left > 0; left--) {
    if (!isQueryPredicateMet(spec, predicate, record)) return false
    predicate += PREDICATE_SIZE
  }
  return true
}
