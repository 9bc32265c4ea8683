import { randomBytes } from 'node:crypto'
import { GatewayError } from '../../errors/index.ts'
import type { EngineLimits } from '../limits/engine-limits.ts'
import { type HeadReader, refusedRequest } from '../message/head-reader.ts'
import { unservedHead } from '../message/unserved-head.ts'
import type { RequestFields } from './request-fields.ts'

/**
 * Gives a sound head to the core, as HTTP/1.1 has it; the reader then describes it. Returns the
 * error if it is not served. `isLast`: nothing follows on the stream.
 */
export function readHttp2Request(
  reader: HeadReader,
  limits: EngineLimits,
  fields: RequestFields,
  isLast: boolean,
): GatewayError | undefined {
  if (fields.isTooLarge) return new GatewayError('headers_too_large')
  const { protocol } = fields
  if (fields.isConnect && protocol !== 'websocket') return new GatewayError('method_not_allowed')
  const text =
    protocol === undefined
      ? fields.text(!isLast)
      : fields.upgradeText(protocol, randomBytes(16).toString('base64'))
  const code = reader.readRequestText(text, limits.maxHeadBytes)
  return code < 0 ? refusedRequest(code) : unservedHead(reader, limits)
}
