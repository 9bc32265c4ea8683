/** The body of a client's request, which is parsed only if more than a few of its fields are read. */
import { isUtf8 } from 'node:buffer'
import type { LearnedRecord, RecordSource } from '../../../ground/exchange/learned.ts'
import { type ByteRange, JsonScanner, type StringCheck } from '../../json/scanner.ts'
import type { ClientFormat, PathFields } from '../format.ts'
import { clientFormats } from '../formats/index.ts'
import type { JsonObject } from '../json/json.ts'
import { hasMessages } from '../mask/message-forms.ts'
import { type ParsedBody, parseBody } from './body.ts'
import { mediaTypeRules } from './media-types.ts'
import { parameterFields } from './parameters.ts'

/** The fields of bodies that are passed on as they came. */
const read = ['model', 'stream', 'stream_options', 'background', 'store', ...parameterFields]

const isNever: StringCheck = () => false

function scannerOf({
  history,
  stored,
  inPath,
  parameterFields: holders = [],
}: ClientFormat): JsonScanner {
  const { checked, refused = [] } = history.rules
  return new JsonScanner({
    read: [...read, ...holders],
    noted: ['messages'],
    checked: {
      ...mediaTypeRules.checked,
      ...checked,
      ...stored?.members.checked,
      ...Object.fromEntries((stored?.members.texts ?? []).map((name) => [name, isNever])),
    },
    refused: [...refused, ...(stored?.members.any ?? [])],
    caseSensitive: [...(stored?.members.any ?? []), ...(stored?.members.texts ?? [])].map((name) =>
      name.toLowerCase(),
    ),
    names: inPath === undefined ? 'plain' : 'ascii',
  })
}

const scanners: ReadonlyMap<ClientFormat, JsonScanner> = new Map(
  Object.values(clientFormats).map((format) => [format, scannerOf(format)]),
)

/** A body in the client's format. */
export interface RequestBody {
  /** At least the model and the parameters of the request. */
  readonly fields: JsonObject
  readonly whole: JsonObject
}

/** The path has the last word, as at the vendor. */
const withPath = (body: JsonObject, { model, stream }: PathFields): JsonObject => ({
  ...body,
  model,
  stream,
})

/** What was found in a body that may be passed on as it came. */
export interface ScannedBody {
  /** The format in which a provider can get the body. */
  readonly format: ClientFormat
  /** What the path says instead of the body. */
  readonly inPath: PathFields | undefined
  readonly fields: JsonObject
  /** Where the value of `model` is; undefined unless there is exactly one. */
  readonly model: ByteRange | undefined
  readonly hasMessages: boolean
}

/** Returns undefined if the body must be parsed. */
function scan(bytes: Buffer, format: ClientFormat, inPath?: PathFields): ScannedBody | undefined {
  const scanner = scanners.get(format)
  if (scanner === undefined || !isUtf8(bytes) || !scanner.scanObject(bytes)) return undefined
  const fields = scanner.values()
  const hasMessages = scanner.isArray('messages')
  if (inPath === undefined) {
    return { format, inPath, fields, model: scanner.rangeOf('model'), hasMessages }
  }
  if (fields.model !== undefined || fields.stream !== undefined) return undefined
  return { format, inPath, fields: withPath(fields, inPath), model: undefined, hasMessages }
}

export class ClientBody implements RequestBody, RecordSource {
  readonly bytes: Buffer
  /** Undefined if the body must be written again. */
  readonly scanned: ScannedBody | undefined
  /** What the path says instead of the body. */
  readonly inPath: PathFields | undefined
  #parsed: ParsedBody | undefined

  /**
   * `format` is set if the body may be passed on as it came.
   * @throws LlmError 400 if the body is not a JSON object.
   */
  constructor(bytes: Buffer, format: ClientFormat | undefined, inPath?: PathFields)
  /** A body with the same bytes as one that was read before. */
  constructor(bytes: Buffer, scanned: ScannedBody)
  constructor(bytes: Buffer, from: ClientFormat | ScannedBody | undefined, inPath?: PathFields) {
    const isScanned = from !== undefined && 'fields' in from
    this.bytes = bytes
    this.inPath = isScanned ? from.inPath : inPath
    this.scanned = isScanned ? from : from && scan(bytes, from, inPath)
    if (this.scanned === undefined) this.#parsed = parseBody(bytes)
  }

  /** Returns the fields if no correction for a provider with the client's format changes the others. */
  fieldsToPassOn(format: ClientFormat): JsonObject | undefined {
    const { scanned } = this
    if (scanned === undefined || scanned.format !== format) return undefined
    return scanned.hasMessages || !hasMessages(format) ? scanned.fields : undefined
  }

  /** True if every reader finds the same top-level fields in the bytes; otherwise the body is written again. */
  get isUnambiguous(): boolean {
    return this.scanned !== undefined
  }

  get fields(): JsonObject {
    return this.scanned?.fields ?? this.whole
  }

  get whole(): JsonObject {
    const { body } = this.#parse()
    return this.inPath === undefined ? body : withPath(body, this.inPath)
  }

  /** The whole body for expressions, with doubles for all numbers. */
  get record(): LearnedRecord {
    const { inDoubles } = this.#parse()
    return (
      this.inPath === undefined ? inDoubles : withPath(inDoubles, this.inPath)
    ) as LearnedRecord
  }

  #parse(): ParsedBody {
    this.#parsed ??= parseBody(this.bytes)
    return this.#parsed
  }

  /** Returns the bytes with this model; undefined if the body must be written again for it. */
  withModel(model: string): Buffer | undefined {
    if (this.inPath !== undefined || this.scanned?.fields.model === model) return this.bytes
    const range = this.scanned?.model
    if (range === undefined) return undefined
    const before = this.bytes.subarray(0, range.start)
    return Buffer.concat([
      before,
      Buffer.from(JSON.stringify(model)),
      this.bytes.subarray(range.end),
    ])
  }
}
