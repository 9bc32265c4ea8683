/** A cursor over the value of a source document that remembers what a reader has read. */
import { isObject, type JsonObject } from '../../ground/base/json-object.ts'

/** A parsed document, and where its fields are. Lines and columns begin at 1. */
export interface SourceDocument {
  readonly file: string
  readonly value: unknown
  placeOf(path: string): { readonly line: number; readonly column: number }
}

/**
 * `protection`: the source refuses or limits requests that the result would let pass. `route`: the source serves
 * requests that the result would not. `looser`: a limit lets more requests pass than that of the source. `stricter`: a
 * limit refuses requests that the source lets pass. `lost`:
 * another setting has no counterpart. `changed`: the setting is converted with another difference. `secret`: a
 * Secret has a value of the source, or waits for one.
 */
export type FindingKind =
  | 'protection'
  | 'route'
  | 'looser'
  | 'stricter'
  | 'lost'
  | 'changed'
  | 'secret'

/** Adds a line about a field to the report of the conversion. */
type Report = (kind: FindingKind, field: SourceField, reason: string) => void

/** Fields with such a name protect something, so that not converting them counts as the loss of a protection. */
const protects =
  /auth|acl\b|allow|den(y|ied)|white-?list|black-?list|limit|quota|budget|jwt|tls|ssl|mtls|cors|csrf|guard|secret|verif|block|permission|oidc|saml|restriction|bot-|waf|modsecurity|rpm\b|tpm\b|rps\b|moderat|pii|firewall|satisfy/i

/** Whether a field with this path, or with one of its parents, is a protection. */
export const isProtection = (path: string): boolean => protects.test(path)

/**
 * One field of a document. Fields whose value a reader never looks at are `unread`, so that the report lists
 * them without help from the reader. The methods that return a value take the name of a field below this one;
 * without it, they return the value of this field.
 */
export class SourceField {
  readonly document: SourceDocument
  readonly path: string
  readonly value: unknown
  readonly #report: Report
  readonly #children = new Map<string | number, SourceField>()
  #isTaken = false
  /** Whether a reader has looked at the value. */
  #isRead = false

  private constructor(document: SourceDocument, report: Report, path: string, value: unknown) {
    this.document = document
    this.path = path
    this.value = value
    this.#report = report
  }

  /** The field that stands for a whole document. */
  static root(document: SourceDocument, report: Report): SourceField {
    return new SourceField(document, report, '', document.value)
  }

  get isSet(): boolean {
    this.#isRead = true
    return this.value !== undefined && this.value !== null
  }

  /** Whether the field of this name is set. */
  has(name: string): boolean {
    return this.get(name).isSet
  }

  /** The field of this name; its value is undefined if it does not exist. */
  get(name: string): SourceField {
    this.#isRead = true
    const value =
      isObject(this.value) && Object.hasOwn(this.value, name) ? this.value[name] : undefined
    const step = /^[\w-]+$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`
    return this.#child(
      name,
      this.path === '' ? step.replace(/^\./, '') : `${this.path}${step}`,
      value,
    )
  }

  /** The field at the end of a path of names. */
  at(...names: readonly string[]): SourceField {
    return names.reduce<SourceField>((field, name) => field.get(name), this)
  }

  #child(key: string | number, path: string, value: unknown): SourceField {
    const known = this.#children.get(key)
    if (known !== undefined) return known
    const child = new SourceField(this.document, this.#report, path, value)
    this.#children.set(key, child)
    return child
  }

  /** The items of a list; empty if the field is not set. */
  items(name?: string): SourceField[] {
    if (name !== undefined) return this.get(name).items()
    if (!this.isSet) return []
    if (!Array.isArray(this.value)) return this.#mismatch('expected a list') ?? []
    return this.value.map((item, index) => this.#child(index, `${this.path}[${index}]`, item))
  }

  /** The items of a list, or the field itself if it is not a list. */
  oneOrMore(name?: string): SourceField[] {
    if (name !== undefined) return this.get(name).oneOrMore()
    return Array.isArray(this.value) || !this.isSet ? this.items() : [this]
  }

  /** The fields of an object; empty if the field is not set. */
  entries(name?: string): (readonly [name: string, field: SourceField])[] {
    if (name !== undefined) return this.get(name).entries()
    if (!this.isSet) return []
    if (!isObject(this.value)) return this.#mismatch('expected an object') ?? []
    return Object.keys(this.value).map((name) => [name, this.get(name)] as const)
  }

  /** The text of a string, number or boolean; undefined if the field is not set. */
  text(name?: string): string | undefined {
    if (name !== undefined) return this.get(name).text()
    if (!this.isSet) return undefined
    if (typeof this.value === 'string') return this.value
    if (typeof this.value === 'number' || typeof this.value === 'boolean') return String(this.value)
    return this.#mismatch('expected a string')
  }

  /** The texts of a list, or of a single value. */
  texts(name?: string): string[] {
    if (name !== undefined) return this.get(name).texts()
    return this.oneOrMore().flatMap((item) => item.text() ?? [])
  }

  /** The same; undefined if the field is not set. */
  list(name: string): string[] | undefined {
    return this.has(name) ? this.texts(name) : undefined
  }

  /** The fields with these names that are set, with their whole values. */
  defaults(names: readonly string[]): { field: string; value: unknown }[] {
    return names
      .filter((name) => this.has(name))
      .map((field) => ({ field, value: this.take(field) }))
  }

  number(name?: string): number | undefined {
    if (name !== undefined) return this.get(name).number()
    if (!this.isSet) return undefined
    const value = typeof this.value === 'string' ? Number(this.value) : this.value
    return typeof value === 'number' && Number.isFinite(value) && this.value !== ''
      ? value
      : this.#mismatch('expected a number')
  }

  flag(name?: string): boolean | undefined {
    if (name !== undefined) return this.get(name).flag()
    if (!this.isSet) return undefined
    if (this.value === true || this.value === 'true') return true
    if (this.value === false || this.value === 'false') return false
    return this.#mismatch('expected true or false')
  }

  /** Adds a line about the field to the report. */
  report(kind: FindingKind, reason: string): undefined {
    this.#report(kind, this, reason)
    return undefined
  }

  /** Reports a field that is not converted as a whole, and marks everything below it as read. */
  refuse(kind: FindingKind, reason: string): undefined {
    this.report(kind, reason)
    this.#isTaken = true
    return undefined
  }

  /** Refuses a field without counterpart, if it is set. */
  lose(reason: string, kind = this.#loss): void {
    if (this.isSet) this.refuse(kind, reason)
  }

  /** The name of a field decides whether its loss is that of a protection. */
  get #loss(): FindingKind {
    return isProtection(this.path) ? 'protection' : 'lost'
  }

  #mismatch(message: string): undefined {
    return this.refuse(this.#loss, message)
  }

  /** The whole value, with everything below it marked as read. */
  take(name?: string): unknown {
    if (name !== undefined) return this.get(name).take()
    this.#isTaken = true
    return this.value
  }

  /** The same for an object; empty if the field is not set or has another type. */
  object(name?: string): JsonObject {
    if (name !== undefined) return this.get(name).object()
    if (isObject(this.value) || !this.isSet) {
      this.#isTaken = true
      return isObject(this.value) ? this.value : {}
    }
    return this.#mismatch('expected an object') ?? {}
  }

  /** Marks fields as read that need no conversion. */
  ignore(...names: readonly string[]): void {
    for (const name of names) this.take(name)
  }

  /** The outermost fields at and below this one that no reader looked at. */
  *unread(): Generator<SourceField> {
    if (this.#isTaken || this.value === null) return
    if (!this.#isRead) yield this
    else if (Array.isArray(this.value)) {
      // A list whose items were never visited counts as one field.
      if (this.#children.size === 0 && this.value.length > 0) yield this
      else for (const item of this.items()) yield* item.unread()
    } else if (isObject(this.value)) {
      for (const name of Object.keys(this.value)) yield* this.get(name).unread()
    }
  }
}
