/** Writes a multipart body again while it passes: text fields change, and files keep their bytes. */
import { GatewayError } from '../../../ground/errors/index.ts'
import type { BodyTransform } from '../../../ground/exchange/exchange.ts'
import { LlmError } from '../llm-error.ts'
import { needSingle } from './form-fields.ts'
import type { PartHead } from './part-head.ts'
import { lineEnd, MultipartReader } from './reader.ts'

/** What becomes of a text field that comes after a file. */
export type LateField = 'pass' | 'drop' | 'refuse'

interface FormChanges {
  /** New texts of the fields before the first file, in order; null for those that are left out, undefined for others. */
  readonly texts: readonly (string | null | undefined)[]
  readonly added: readonly (readonly [name: string, text: string])[]
  late(name: string): LateField
  /** Number of bytes of the changed body; undefined if it is not known. */
  readonly length: number | undefined
}

/** Returns the bytes of a new part, from its boundary to the end of its last line. */
export const partOf = (boundary: string, name: string, text: string): Buffer =>
  Buffer.from(
    `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${text}\r\n`,
    'utf8',
  )

type Emit = (bytes: Uint8Array) => void

export class FormWriter implements BodyTransform {
  readonly #boundary: string
  /** Called with what is wrong with the body, which ends the request. */
  readonly #onProblem: (problem: LlmError) => void
  readonly #reader: MultipartReader
  #changes: FormChanges
  #emit: Emit = () => undefined
  #written = 0
  #hasAdded = false
  /** Number of fields before the first file. */
  #fields = 0
  #isAfterFile = false
  #isPassing = false
  readonly #names = new Set<string>()

  constructor(boundary: string, changes: FormChanges, onProblem: (problem: LlmError) => void) {
    this.#boundary = boundary
    this.#changes = changes
    this.#onProblem = onProblem
    this.#reader = new MultipartReader(boundary, {
      onPart: (head, bytes) => this.#begin(head, bytes),
      onContent: (bytes) => this.#content(bytes),
      onPartEnd: () => this.#endPart(),
      onLast: () => {
        this.#add()
        this.#write(Buffer.from(`--${boundary}--`))
      },
    })
  }

  /** Sets the changes for another provider. Nothing of the body may have been sent. */
  set changes(changes: FormChanges) {
    this.#changes = changes
  }

  get length(): number | undefined {
    return this.#changes.length
  }

  push(chunk: Uint8Array, emit: Emit): void {
    this.#run(emit, () => this.#reader.push(chunk))
  }

  end(emit: Emit): void {
    this.#run(emit, () => {
      this.#reader.end()
      if (this.#reader.endsLine) this.#write(lineEnd)
      const { length } = this.#changes
      if (length !== undefined && length !== this.#written) {
        throw new LlmError(400, 'the multipart body has another length than content-length says')
      }
    })
  }

  #run(emit: Emit, read: () => void): void {
    this.#emit = emit
    try {
      read()
    } catch (thrown) {
      if (!(thrown instanceof LlmError)) throw thrown
      this.#onProblem(thrown)
      throw new GatewayError('form_refused', thrown.message)
    }
  }

  #begin({ name, isFile }: PartHead, bytes: Buffer): void {
    needSingle(name, isFile, this.#names.has(name))
    this.#names.add(name)
    this.#add()
    this.#isAfterFile ||= isFile
    this.#isPassing = isFile || (this.#isAfterFile ? this.#passesLate(name) : this.#passes(name))
    if (!this.#isPassing) return
    this.#write(Buffer.from(`--${this.#boundary}\r\n`))
    this.#write(bytes)
  }

  #add(): void {
    if (this.#hasAdded) return
    this.#hasAdded = true
    for (const [name, text] of this.#changes.added) {
      this.#write(partOf(this.#boundary, name, text))
    }
  }

  /** Writes the new text of a field before the first file, if it has one. Returns whether the field passes unchanged. */
  #passes(name: string): boolean {
    const text = this.#changes.texts[this.#fields++]
    if (typeof text === 'string') this.#write(partOf(this.#boundary, name, text))
    return text === undefined
  }

  #passesLate(name: string): boolean {
    const late = this.#changes.late(name)
    if (late !== 'refuse') return late === 'pass'
    throw new LlmError(400, lateField(name))
  }

  #content(bytes: Buffer): void {
    if (this.#isPassing) this.#write(bytes)
  }

  #endPart(): void {
    if (this.#isPassing) this.#write(lineEnd)
  }

  #write(bytes: Buffer): void {
    this.#written += bytes.length
    this.#emit(bytes)
  }
}

const lateField = (name: string): string =>
  `the field ${name} comes after a file, but the gateway needs it before: send text fields before files`
