/** Maps refused heads to errors of the catalogue. */

import { type ErrorCode, GatewayError } from '../../../ground/errors/index.ts'
import {
  FLAG_CHUNKED,
  FLAG_EXPECT_OTHER,
  METHOD_CONNECT,
  nameOfCode,
  statusOfRefusal,
} from '../../core/index.ts'
import type { EngineLimits } from '../limits/engine-limits.ts'
import type { HeadReader } from './head-reader.ts'

const codeOfStatus: Record<number, ErrorCode> = {
  400: 'bad_request',
  414: 'uri_too_long',
  431: 'headers_too_large',
  501: 'not_implemented',
  505: 'version_not_supported',
}

/** Returns the error of a request that the core refuses. */
export function refusedRequest(refusal: number): GatewayError {
  const code = codeOfStatus[statusOfRefusal(refusal)] ?? 'bug'
  return new GatewayError(code, nameOfCode(refusal))
}

/** Returns the error of a response that the core refuses. */
export function refusedResponse(refusal: number): GatewayError {
  return new GatewayError('upstream_malformed', nameOfCode(refusal))
}

/**
 * Returns why the head that was read last is well-formed but refused (RFC 9110 9.3.6, 10.1.1).
 * `maxHeaders` is the maximum number of its fields, if they are limited.
 */
export function unservedHead(
  reader: HeadReader,
  { underscoreHeaders }: Pick<EngineLimits, 'underscoreHeaders'>,
  maxHeaders = Number.POSITIVE_INFINITY,
): GatewayError | undefined {
  if (reader.fieldCount > maxHeaders) return new GatewayError('headers_too_large')
  if (reader.methodId === METHOD_CONNECT) {
    // What follows the head belongs to the tunnel, so content would be read twice (RFC 9110 9.3.6).
    if (reader.contentLength > 0 || (reader.flags & FLAG_CHUNKED) !== 0) {
      return new GatewayError('bad_request', 'a CONNECT request with content')
    }
  }
  if ((reader.flags & FLAG_EXPECT_OTHER) !== 0) return new GatewayError('expectation_failed')
  if (underscoreHeaders === 'keep') {
    if (!reader.hasFramingAlias()) return undefined
    return new GatewayError('bad_request', 'a header name may be taken for a framing field')
  }
  if (reader.dropUnderscores() && underscoreHeaders === 'refuse') {
    return new GatewayError('bad_request', 'a header name has an underscore')
  }
  return undefined
}
