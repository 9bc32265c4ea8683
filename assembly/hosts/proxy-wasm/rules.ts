// The configuration of the filter: rules in order, of which the first that matches a request applies.
import { TEXTS_COMPLETIONS, TEXTS_EMBEDDINGS, TEXTS_MESSAGES, TEXTS_RESPONSES, TEXTS_TOKEN_COUNT } from '../../texts/abi'
import { Bytes, newBytes, newRecord } from '../../texts/bytes'
import { regexIsFullMatch } from '../../regex/index'
import { changeHeader, readHeaderBytes, REQUEST_HEADERS } from './host'
import { Limit } from './limits'
import { endsWith, endsWithAscii, hasPrefix, isSame } from './paths'

export const PATH_EXACT: i32 = 1
export const PATH_PREFIX: i32 = 2
export const PATH_PATTERN: i32 = 3

/** Formats of a path besides TEXTS_*: nothing is read. */
export const FORMAT_PASS: i32 = 0
/** No type is mapped to the path. Rules with guards refuse the request. */
export const FORMAT_UNMAPPED: i32 = -1

@unmanaged
export class HeaderMatch {
  next: HeaderMatch
  name: Bytes
  value: Bytes
  regex: i32
}

@unmanaged
export class HostMatch {
  next: HostMatch
  /** Without the asterisk of a wildcard. */
  name: Bytes
  isWildcard: bool
}

@unmanaged
export class Ending {
  next: Ending
  text: Bytes
  format: i32
}

@unmanaged
export class HeaderChange {
  next: HeaderChange
  what: i32
  name: Bytes
  value: Bytes
}

/** What a request guard that rejects answers; `status` 0 if the guard masks. */
@unmanaged
export class Refusal {
  next: Refusal
  status: i32
  message: Bytes
}

@unmanaged
export class Rule {
  next: Rule
  name: Bytes
  hosts: HostMatch
  pathKind: i32
  path: Bytes
  pathRegex: i32
  /** The same for paths in plain form (see paths.ts). */
  plainPath: Bytes
  plainRegex: i32
  method: Bytes
  headers: HeaderMatch
  /** The rule reads messages of models. */
  isModel: bool
  /** If not set, the usual endings apply. */
  hasRoutes: bool
  endings: Ending
  defaultFormat: i32
  /** Handles of chains of guards, or 0. */
  requestGuards: i32
  responseGuards: i32
  refusals: Refusal
  limits: Limit
  requestChanges: HeaderChange
  responseChanges: HeaderChange
  /** If set, requests that match fail with 500. */
  isUnusable: bool
}

@unmanaged
export class Config {
  rules: Rule
  maxBody: i32
  /** Headers wait for the judgement of the body. The host must call the filter for bodies while headers are held. */
  holdsHeaders: bool
  /** Requests that use it, and the root context. */
  users: i32
}

// @ts-ignore: decorator
@inline
export function isNone<T>(record: T): bool {
  return changetype<usize>(record) == 0
}

export function newRule(): Rule {
  const rule = changetype<Rule>(newRecord(offsetof<Rule>()))
  rule.name = newBytes()
  rule.path = newBytes()
  rule.plainPath = newBytes()
  rule.method = newBytes()
  return rule
}

function matchesHost(rule: Rule, host: Bytes): bool {
  if (isNone(rule.hosts)) return true
  for (let one = rule.hosts; !isNone(one); one = one.next) {
    if (one.isWildcard ? host.used > one.name.used && endsWith(host, one.name) : isSame(host, one.name)) return true
  }
  return false
}

function matchesPath(rule: Rule, path: Bytes, isPlain: bool): bool {
  const wanted = isPlain ? rule.plainPath : rule.path
  if (rule.pathKind == PATH_EXACT) return isSame(path, wanted)
  if (rule.pathKind == PATH_PREFIX) return hasPrefix(path, wanted)
  if (rule.pathKind != PATH_PATTERN) return true
  return regexIsFullMatch(isPlain ? rule.plainRegex : rule.pathRegex, path.data, path.used)
}

const value: Bytes = changetype<Bytes>(memory.data(offsetof<Bytes>()))

function matchesHeaders(rule: Rule): bool {
  for (let one = rule.headers; !isNone(one); one = one.next) {
    if (!readHeaderBytes(REQUEST_HEADERS, one.name.data, one.name.used, value)) return false
    const isMatch = one.regex > 0 ? regexIsFullMatch(one.regex, value.data, value.used) : isSame(value, one.value)
    if (!isMatch) return false
  }
  return true
}

/** The rule for a request, or 0. `path` has no query; `host` is in lower case and has no port. */
export function findRule(config: Config, host: Bytes, path: Bytes, method: Bytes, isPlain: bool): Rule {
  for (let rule = config.rules; !isNone(rule); rule = rule.next) {
    const isMethod = rule.method.used == 0 || isSame(method, rule.method)
    if (isMethod && matchesHost(rule, host) && matchesPath(rule, path, isPlain) && matchesHeaders(rule)) return rule
  }
  return changetype<Rule>(0)
}

/** The format of a path that has a usual ending, else FORMAT_UNMAPPED. The packages for other languages have the same endings. */
export function defaultFormatOf(plain: Bytes): i32 {
  if (endsWithAscii(plain, '/chat/completions')) return TEXTS_COMPLETIONS
  if (endsWithAscii(plain, '/v1/messages')) return TEXTS_MESSAGES
  if (endsWithAscii(plain, '/v1/messages/count_tokens')) return TEXTS_TOKEN_COUNT
  if (endsWithAscii(plain, '/responses')) return TEXTS_RESPONSES
  return endsWithAscii(plain, '/embeddings') ? TEXTS_EMBEDDINGS : FORMAT_UNMAPPED
}

/** TEXTS_* or FORMAT_*, by the first ending that fits; the configuration has the longest ones first. */
export function formatOf(rule: Rule, plain: Bytes): i32 {
  if (!rule.hasRoutes) return defaultFormatOf(plain)
  for (let one = rule.endings; !isNone(one); one = one.next) if (endsWith(plain, one.text)) return one.format
  return rule.defaultFormat
}

export function changeHeaders(map: i32, changes: HeaderChange): void {
  for (let one = changes; !isNone(one); one = one.next) {
    changeHeader(map, one.what, one.name.data, one.name.used, one.value.data, one.value.used)
  }
}

/** The refusal of a guard. */
export function refusalOf(rule: Rule, guard: i32): Refusal {
  let one = rule.refusals
  for (let i = 0; i < guard && !isNone(one); i++) one = one.next
  return one
}
