/** A cursor over the value of a source document that remembers what a reader has read. */
import { isObject, type JsonObject } from '../../ground/base/json-object.ts'

/** A parsed document, and where its fields are. Lines and columns begin at 1. */
export interface SourceDocument {
  readonly file: string
  readonly value: unknown
  placeOf(path: string): { readonly line: number; readonly column: number }
}

/** Called with a field whose value does not have the expected type. */
type OnMismatch = (field: SourceField, message: string) => void

/**
 * One field of a document. Fields whose value a reader never looks at are `unread`, so that the report lists
 * them without help from the reader. The methods that return a value take the name of a field below this one;
 * without it, they return the value of this field.
 */
export class SourceField {
  readonly document: SourceDocument
  readonly path: string
  readonly value: unknown
  readonly #onMismatch: OnMismatch
  readonly #children = new Map<string | number, SourceField>()
  #isTaken = false
  /** Whether a reader has looked at the value. */
  #isRead = false

  private constructor(
    document: SourceDocument,
    onMismatch: OnMismatch,
    path: string,
    value: unknown,
  ) {
    this.document = document
    this.path = path
    this.value = value
    this.#onMismatch = onMismatch
  }

  /** The field that stands for a whole document. */
  static root(document: SourceDocument, onMismatch: OnMismatch): SourceField {
    return new SourceField(document, onMismatch, '', document.value)
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
    const child = new SourceField(this.document, this.#onMismatch, path, value)
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

  #mismatch(message: string): undefined {
    this.#onMismatch(this, message)
    this.#isTaken = true
    return undefined
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
