/** Converse of vendor F. */
import type { KnownOfResponse, ProviderFormat } from '../../format.ts'
import { readConverse, readConverseError } from './response.ts'
import { ConverseReader } from './stream.ts'
import { writeConverseRequest } from './write-request.ts'

/** Responses have neither an id nor a model. */
const headOf = ({ model, newId }: KnownOfResponse) => ({ id: `msg_${newId()}`, model })

export const converse: ProviderFormat = {
  labels: { maxIdLength: 64, maxNameLength: 64 },
  framing: 'event-stream',
  writeRequest: (chat, labels, options) => writeConverseRequest(chat, options, labels),
  readResponse: (body, known) => readConverse(body, headOf(known)),
  reader: (known) => new ConverseReader(headOf(known)),
  readError: readConverseError,
  responseFields: ['output'],
}
