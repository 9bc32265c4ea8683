/** Writes the header fields of a request into its record: names, digests, and values that are needed. */

import type { FieldDigests } from '../../../engines/core/field-digests.ts'
import type { ReceivedFields } from '../../../engines/http/contracts/requests.ts'
import { isCredentialName } from '../../../ground/secrets/credential-names.ts'
import type { BlockWriter } from '../../../past/decisions/block-writer.ts'
import { blockFields, decisionFields, headerFields } from '../../../past/decisions/fields.ts'
import { SharedText } from '../../../past/decisions/shared-text.ts'
import type { HeaderReferences } from '../config/header-references.ts'
import { CommonHeaders } from './common-headers.ts'

/** What is recorded about a field besides its name. */
type Part = 'nothing' | 'digest' | 'value'

/** A cached field name. It is found by its digest, so that requests do not allocate a string for it. */
interface KnownName {
  readonly text: string
  /** The second half of the digest. The first half is the key in the Map. */
  readonly half: number
  readonly part: Part
  readonly shared: SharedText
}

/** Maximum number of cached names, because clients choose them. */
const maxNames = 4_096
const maxFields = 128
/** Numbers that describe one field in ReceivedFields. */
const stride = 5
const noDigest = Buffer.alloc(8)

export class ReceivedHeaders {
  /** Whether fields of the last request are left out, because there are too many. */
  isCut = false
  /** The number of the common part that has the fields of the last request; 0 if there are none. */
  number = 0
  readonly #digests: FieldDigests
  readonly #references: HeaderReferences
  readonly #isHidden: (name: string) => boolean
  readonly #names = new Map<number, KnownName>()
  /** Generation of the references that the cached names were checked against. */
  #generation = -1
  readonly #common = new CommonHeaders()
  readonly #known: (KnownName | undefined)[] = Array.from({ length: maxFields })

  /** `hidden` contains further names of credentials, in lower case. */
  constructor(digests: FieldDigests, references: HeaderReferences, hidden: ReadonlySet<string>) {
    this.#digests = digests
    this.#references = references
    this.#isHidden = (name) => hidden.has(name) || isCredentialName(name)
  }

  /** Reads the fields, and writes them unless the block has them. Call it before `begin` of the decision. */
  prepare(fields: ReceivedFields, block: BlockWriter): void {
    if (this.#generation !== this.#references.generation || this.#names.size > maxNames) {
      this.#generation = this.#references.generation
      this.#names.clear()
      this.#common.clear()
    }
    const { bytes, base, spans, count } = fields
    this.#digests.load(bytes, base, spans, count)
    this.isCut = this.#digests.count < count
    this.number = 0
    if (this.#digests.count === 0) return
    this.#digests.digestWhole(spans)
    const [first, second] = [this.#digests.value(0, 0), this.#digests.value(0, 1)]
    if (!this.isCut) this.number = this.#common.find(block, first, second)
    if (this.number !== 0) return
    this.#write(fields, block)
    this.number = block.addCommon()
    // Each decision whose fields were truncated must be marked.
    if (!block.isCut && !this.isCut) this.#common.add(block, first, second, this.number)
  }

  #nameOf(fields: ReceivedFields, at: number): KnownName {
    const key = this.#digests.name(at, 0)
    const half = this.#digests.name(at, 1)
    const known = this.#names.get(key)
    if (known?.half === half) return known
    const text = spanText(fields, at * stride).toLowerCase()
    const part = this.#partOf(text)
    const name = { text, half, part, shared: new SharedText() }
    this.#names.set(key, name)
    return name
  }

  #partOf(name: string): Part {
    if (this.#isHidden(name)) return 'nothing'
    return this.#references.has(name) ? 'value' : 'digest'
  }

  #write(fields: ReceivedFields, block: BlockWriter): void {
    const { count } = this.#digests
    this.#digests.digestEach(fields.spans)
    for (let at = 0; at < count; at++) {
      const name = this.#nameOf(fields, at)
      this.#known[at] = name
      name.shared.set(block, name.text)
    }
    const part = block.begin(blockFields.commons)
    const names = block.begin(decisionFields.headerNames)
    for (let at = 0; at < count; at++) block.packed(this.#known[at]?.shared.number ?? 0)
    block.end(names)
    const digests = block.begin(decisionFields.headerDigests)
    for (let at = 0; at < count; at++) this.#writeDigest(block, at)
    block.end(digests)
    for (let at = 0; at < count; at++) {
      if (this.#known[at]?.part !== 'value') continue
      const value = block.begin(decisionFields.headerValues)
      block.uint(headerFields.field, at)
      writeValue(fields, at * stride + 2, block)
      block.end(value)
    }
    block.end(part)
  }

  #writeDigest(block: BlockWriter, at: number): void {
    if (this.#known[at]?.part === 'nothing') block.raw(noDigest, 0, 8)
    else {
      const from = this.#digests.valueAt(at)
      block.raw(this.#digests.bytes, from, from + 8)
    }
  }
}

function writeValue({ bytes, base, spans }: ReceivedFields, at: number, block: BlockWriter): void {
  block.latin1(headerFields.value, bytes, base + (spans[at] ?? 0), base + (spans[at + 1] ?? 0))
}

const spanText = ({ bytes, base, spans }: ReceivedFields, at: number): string =>
  bytes.toString('latin1', base + (spans[at] ?? 0), base + (spans[at + 1] ?? 0))
