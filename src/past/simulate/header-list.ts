/** Header fields of a simulated request. Some of their values may be unknown. */
import { checkField } from '../../engines/http/message/header-fields.ts'
import type { FieldPair, HeaderFields } from '../../ground/exchange/exchange.ts'
import type { SimulatedHeader } from './types.ts'
import type { Unknowns } from './unknowns.ts'

/** Fields that policies cannot see, because the engine reads and writes them. */
const hidden = new Set([
  'host',
  'expect',
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
])

/** Lower-case names by the names that clients send; undefined for hidden fields. Most requests have the same names. */
const keys = new Map<string, string | undefined>()
const maxKeys = 1_000

function keyOf(name: string): string | undefined {
  const known = keys.get(name)
  if (known !== undefined || keys.has(name)) return known
  const lower = name.toLowerCase()
  const key = hidden.has(lower) ? undefined : lower
  if (keys.size < maxKeys) keys.set(name, key)
  return key
}

/** Replaces an unknown value during route matching. No route can match this value. */
const placeholder = '\u0001'

export class HeaderList implements HeaderFields {
  readonly #unknowns: Unknowns
  readonly #names: string[] = []
  readonly #keys: string[] = []
  readonly #values: (string | undefined)[] = []
  readonly #received = new Set<string>()
  /** Why fields may have been changed, by name in lower case. */
  readonly #uncertain = new Map<string, string>()
  /** Why any field may have been changed, except those in `#written`. */
  #allUncertain: string | undefined
  readonly #written = new Set<string>()

  constructor(unknowns: Unknowns) {
    this.#unknowns = unknowns
  }

  /** Replaces all fields. `findValue` finds values by their digests. */
  load(
    headers: readonly SimulatedHeader[],
    findValue: (header: SimulatedHeader) => string | undefined,
  ): void {
    this.#names.length = 0
    this.#keys.length = 0
    this.#values.length = 0
    this.#received.clear()
    this.#uncertain.clear()
    this.#written.clear()
    this.#allUncertain = undefined
    for (const header of headers) {
      const key = keyOf(header.name)
      if (key === undefined) continue
      this.#names.push(header.name)
      this.#keys.push(key)
      this.#values.push(header.value ?? findValue(header))
      this.#received.add(key)
    }
  }

  /** Marks a field that a step may have changed in an unknown way. */
  doubt(name: string, reason: string): void {
    this.#uncertain.set(name.toLowerCase(), reason)
  }

  doubtAll(reason: string): void {
    this.#allUncertain = reason
    this.#written.clear()
  }

  /** Returns why the values of a field are unknown; undefined if they are known, or if it is absent. */
  problemOf(key: string): string | undefined {
    const doubt = this.#doubtOf(key)
    if (doubt !== undefined) return doubt
    const at = this.#keys.indexOf(key)
    return at >= 0 && this.#hasUnknownValue(key, at) ? unrecorded(key) : undefined
  }

  #hasUnknownValue(key: string, from: number): boolean {
    for (let at = from; at < this.#keys.length; at++) {
      if (this.#keys[at] === key && this.#values[at] === undefined) return true
    }
    return false
  }

  #doubtOf(key: string): string | undefined {
    const doubt = this.#uncertain.size > 0 ? this.#uncertain.get(key) : undefined
    if (doubt !== undefined || this.#allUncertain === undefined) return doubt
    return this.#written.has(key) ? undefined : this.#allUncertain
  }

  /** Reads a field strictly: throws in a step if it is unknown. */
  #require(key: string): void {
    const reason = this.problemOf(key)
    if (reason !== undefined) this.#unknowns.read(reason)
  }

  get(name: string): string | undefined {
    const key = name.toLowerCase()
    this.#require(key)
    const at = this.#keys.indexOf(key)
    return at < 0 ? undefined : this.#values[at]
  }

  getAll(name: string): string[] {
    const key = name.toLowerCase()
    this.#require(key)
    return this.#values.filter((value, at): value is string => {
      return value !== undefined && this.#keys[at] === key
    })
  }

  lines(name: string): string | readonly string[] | undefined {
    const values = this.getAll(name)
    return values.length < 2 ? values[0] : values
  }

  has(name: string): boolean {
    const key = name.toLowerCase()
    const doubt = this.#doubtOf(key)
    if (doubt !== undefined) this.#unknowns.read(doubt)
    return this.#keys.includes(key)
  }

  set(name: string, value: string): void {
    checkField(name, value)
    this.remove(name)
    this.#push(name, value)
  }

  add(name: string, value: string): void {
    checkField(name, value)
    this.#push(name, value)
  }

  #push(name: string, value: string): void {
    const key = name.toLowerCase()
    if (hidden.has(key)) return
    this.#names.push(name)
    this.#keys.push(key)
    this.#values.push(value)
  }

  remove(name: string): void {
    const key = name.toLowerCase()
    this.#received.delete(key)
    if (this.#uncertain.size > 0) this.#uncertain.delete(key)
    if (this.#allUncertain !== undefined) this.#written.add(key)
    for (let at = this.#keys.length - 1; at >= 0; at--) {
      if (this.#keys[at] === key) this.#cut(at)
    }
  }

  #cut(at: number): void {
    this.#names.splice(at, 1)
    this.#keys.splice(at, 1)
    this.#values.splice(at, 1)
  }

  *entries(): Iterable<readonly [string, string]> {
    const reason = this.#allUncertain ?? this.#uncertain.values().next().value
    if (reason !== undefined) this.#unknowns.read(reason)
    for (let at = 0; at < this.#names.length; at++) {
      const value = this.#values[at]
      if (value === undefined) this.#unknowns.read(unrecorded(this.#keys[at] ?? ''))
      yield [this.#names[at] ?? '', value ?? placeholder]
    }
  }

  /** Lower-case names of the fields that remain as the client sent them, if `isWanted` returns true. */
  receivedNames(isWanted: (name: string) => boolean): readonly string[] {
    return [...this.#received].filter(isWanted)
  }

  take(isTaken: (name: string) => boolean): FieldPair[] {
    const taken: FieldPair[] = []
    for (const key of [...this.#received]) {
      if (!isTaken(key)) continue
      for (const value of this.getAll(key)) taken.push([key, value])
      this.remove(key)
    }
    return taken
  }
}

const reasons = new Map<string, string>()

/** Returns the reason for an unknown value. Reasons are shared, because many requests have the same. */
function unrecorded(name: string): string {
  let reason = reasons.get(name)
  if (reason === undefined) {
    reason = `the value of header ${name} is not recorded`
    if (reasons.size < 1_000) reasons.set(name, reason)
  }
  return reason
}
