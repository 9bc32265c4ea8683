/**
 * A multipart body of a client's request. Only the text fields before the first file are read before the request is
 * sent; files and what follows them pass as they come.
 */
import { GrowingBytes } from '../../../ground/base/growing-bytes.ts'
import type { Body, BodyWatcher, BufferedBody } from '../../../ground/exchange/exchange.ts'
import type { LearnedRecord, RecordSource } from '../../../ground/exchange/learned.ts'
import type { JsonObject } from '../json/json.ts'
import { LlmError } from '../llm-error.ts'
import type { RequestBody } from '../request/client-body.ts'
import {
  type FormField,
  fieldText,
  maxFieldBytes,
  needSingle,
  objectOf,
  plainName,
  textsOf,
} from './form-fields.ts'
import { FormWriter, type LateField, partOf } from './form-writer.ts'
import { boundaryOf, maxPartHead } from './part-head.ts'
import { MultipartReader } from './reader.ts'

/** Thrown by the reader when the first file begins. */
const enough = Symbol('the first file has begun')

/** Reads the text fields before the first file. */
class FormStart implements BodyWatcher {
  readonly fields: FormField[] = []
  readonly #reader: MultipartReader
  readonly #text = new GrowingBytes()
  #error: unknown
  #name = ''
  #headSize = 0
  #bytes = 0

  constructor(boundary: string) {
    const names = new Set<string>()
    this.#reader = new MultipartReader(boundary, {
      onPart: ({ name, isFile }, { length }) => {
        needSingle(name, isFile, names.has(name))
        names.add(name)
        if (isFile) throw enough
        this.#name = name
        this.#headSize = `--${boundary}\r\n`.length + length
        this.#text.clear()
      },
      onContent: (bytes) => this.#add(bytes),
      onPartEnd: () => this.#endField(),
      onLast: () => undefined,
    })
  }

  watch(bytes: Buffer, start: number, end: number): boolean {
    if (this.#error === undefined) {
      try {
        this.#reader.push(bytes.subarray(start, end))
      } catch (error) {
        this.#error = error
      }
    }
    return this.#error !== undefined
  }

  /** Called when no more is read. @throws LlmError 400, or 413 if there are too many bytes before the first file */
  finish(isComplete: boolean): void {
    if (this.#error === enough) return
    if (this.#error !== undefined) throw this.#error
    if (!isComplete) throw tooLarge()
    this.#reader.end()
  }

  #add(bytes: Buffer): void {
    this.#bytes += bytes.length
    if (this.#bytes > maxFieldBytes) throw tooLarge()
    this.#text.add(bytes, 0, bytes.length)
  }

  #endField(): void {
    const name = this.#name
    const { content } = this.#text
    const value = fieldText(content, name, this.#reader.place)
    const size = this.#headSize + content.length + '\r\n'.length
    this.fields.push({ name, value, size })
  }
}

const tooLarge = () =>
  new LlmError(413, `the text fields before the first file have more than ${maxFieldBytes} bytes`)

/** What decides about text fields that come after a file. */
interface LateRules {
  /** Fields that the gateway needs before it sends the request, by their names in lower case without brackets. */
  readonly needed: ReadonlySet<string>
  /** Whether guards must read every text. */
  readonly isGuarded: boolean
}

export class FormBody implements RequestBody, RecordSource {
  readonly fields: JsonObject
  readonly #boundary: string
  readonly #parts: readonly FormField[]
  #writer: FormWriter | undefined
  /** Why the rest of the body was refused while it passed; undefined if it was not. */
  problem: LlmError | undefined

  private constructor(boundary: string, parts: readonly FormField[]) {
    this.#boundary = boundary
    this.#parts = parts
    this.fields = objectOf(parts)
  }

  /** @throws LlmError 400 if the beginning of the body is malformed, or 413 if it is too large */
  static async read(body: Body, contentTypes: readonly string[]): Promise<FormBody> {
    const boundary = boundaryOf(contentTypes)
    const start = new FormStart(boundary)
    const read: BufferedBody = await body.read(2 * maxFieldBytes + maxPartHead, start)
    start.finish(read.complete)
    return new FormBody(boundary, start.fields)
  }

  get whole(): JsonObject {
    return this.fields
  }

  get record(): LearnedRecord {
    return this.fields as LearnedRecord
  }

  readonly inPath = undefined
  /** Guards and the provider read the same fields: each decided one occurs once. */
  readonly isUnambiguous = true

  /** Number of bytes of the fields. */
  get length(): number {
    return this.#parts.reduce((sum, { size }) => sum + size, 0)
  }

  /**
   * Sends the body with other fields. `changed` is the object that replaces `fields`; undefined if they stay. Without
   * `rules`, nothing that follows the first file concerns the gateway.
   */
  send(body: Body, changed: JsonObject | undefined, rules: LateRules | undefined): void {
    const changes = this.#changesTo(changed ?? this.fields)
    const isSame = changes.added.length === 0 && changes.texts.every((text) => text === undefined)
    if (isSame && rules === undefined && this.#writer === undefined) return
    const set = new Set(changes.added.map(([name]) => plainName(name)))
    const late = (name: string): LateField => {
      const plain = plainName(name)
      if (changes.replaced.has(plain) || rules?.needed.has(plain) === true) return 'refuse'
      if (set.has(plain)) return 'drop'
      return rules?.isGuarded === true ? 'refuse' : 'pass'
    }
    const isLengthKnown = set.size === 0 && body.length !== undefined
    const length = isLengthKnown ? (body.length ?? 0) + changes.growth : undefined
    const all = { texts: changes.texts, added: changes.added, late, length }
    if (this.#writer === undefined) {
      this.#writer = new FormWriter(this.#boundary, all, (problem) => {
        this.problem = problem
      })
    } else this.#writer.changes = all
    body.through(this.#writer)
  }

  /** @throws LlmError 400 if a new text contains the boundary */
  #changesTo(changed: JsonObject) {
    const next = new Map<string, readonly string[] | undefined>()
    const texts: (string | null | undefined)[] = []
    let growth = 0
    for (const { name, size } of this.#parts) {
      if (changed[name] === this.fields[name]) {
        texts.push(undefined)
        continue
      }
      const left = next.get(name) ?? (Object.hasOwn(changed, name) ? textsOf(changed[name]) : [])
      const [text = null] = left
      next.set(name, left.slice(1))
      texts.push(text)
      growth += this.#sizeOf(name, text) - size
    }
    const added = Object.entries(changed)
      .filter(([name]) => !Object.hasOwn(this.fields, name))
      .flatMap(([name, value]) => textsOf(value).map((text) => [name, text] as const))
    for (const [name, text] of added) growth += this.#sizeOf(name, text)
    return { texts, added, growth, replaced: new Set([...next.keys()].map(plainName)) }
  }

  #sizeOf(name: string, text: string | null): number {
    if (text === null) return 0
    if (text.includes(`--${this.#boundary}`)) {
      throw new LlmError(400, `the field ${name} would contain the boundary of the body`)
    }
    return partOf(this.#boundary, name, text).length
  }
}
