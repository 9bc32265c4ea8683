// HTTP/1.1 heads: bytes in, a record of numbers and spans out.
import { fromLatin1, latin1 } from './core.mjs'

const spans = ['method', 'target', 'path', 'query', 'authority', 'host', 'upgrade', 'reason']
const numbers = {
  methodId: 'METHOD_ID',
  status: 'STATUS',
  minor: 'MINOR',
  port: 'PORT',
  scheme: 'SCHEME',
  hostField: 'HOST_FIELD',
}

/** Reads a head: the code, and the record as plain data when that is 0. */
export function readHead(core, { message, bytes, maxBytes = 65536, maxFields = 100 }) {
  return core.scoped(() => {
    const { HEAD_SIZE, FIELD_SIZE, HEAD_FIELD_LIMIT } = core.constants
    const record = core.alloc(HEAD_SIZE + maxFields * FIELD_SIZE)
    // Scratch is not cleared. Trailers have no head, and leave most of the record as it was.
    core.bytes(record, record + HEAD_SIZE).fill(0xff)
    core.view.setInt32(record + HEAD_FIELD_LIMIT, maxFields, true)
    const start = core.put(latin1(bytes))
    const end = start + bytes.length
    const code =
      message === 'trailers'
        ? core.call.head_trailers(record, start, end)
        : core.call[`head_${message}`](record, start, end, 0, maxBytes)
    return { code, head: code === 0 ? describe(core, record, end) : undefined }
  })
}

function describe(core, record, end) {
  const { constants, view } = core
  const word = (offset) => view.getInt32(record + offset, true)
  const text = (offset) => {
    const start = word(offset)
    return start === -1 ? null : fromLatin1(core.bytes(start >>> 0, word(offset + 4) >>> 0))
  }
  const head = {
    contentLength: view.getFloat64(record + constants.HEAD_CONTENT_LENGTH, true),
    flags: namesOf(constants, word(constants.HEAD_FLAGS)),
    fields: [],
    hops: [],
    rest: fromLatin1(core.bytes(Math.min(word(constants.HEAD_END) >>> 0, end), end)),
  }
  for (const name of spans) head[name] = text(constants[`HEAD_${name.toUpperCase()}`])
  for (const [name, field] of Object.entries(numbers)) head[name] = word(constants[`HEAD_${field}`])
  for (let index = 0; index < word(constants.HEAD_FIELD_COUNT); index++) {
    const field = constants.HEAD_FIELDS + index * constants.FIELD_SIZE
    head.fields.push([text(field + constants.FIELD_NAME), text(field + constants.FIELD_VALUE)])
    if (word(field + constants.FIELD_INFO) & constants.INFO_HOP) head.hops.push(index)
  }
  return head
}

const namesOf = (constants, flags) =>
  Object.keys(constants)
    .filter((name) => name.startsWith('FLAG_') && flags & constants[name])
    .map((name) => name.slice('FLAG_'.length))
    .sort()
