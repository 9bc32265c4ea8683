import { FLAG_EXPECT_OTHER, METHOD_CONNECT } from '../../core/index.ts'
import { GatewayError } from '../../errors/index.ts'
import type { EngineLimits } from '../limits/engine-limits.ts'
import type { HeadReader } from './head-reader.ts'

/**
 * Why the head that was read last is well-formed but not served (RFC 9110 9.3.6, 10.1.1).
 * `maxHeaders`: most fields of it, if they are counted.
 */
export function unservedHead(
  reader: HeadReader,
  { underscoreHeaders }: Pick<EngineLimits, 'underscoreHeaders'>,
  maxHeaders = Number.POSITIVE_INFINITY,
): GatewayError | undefined {
  if (reader.fieldCount > maxHeaders) return new GatewayError('headers_too_large')
  if (reader.methodId === METHOD_CONNECT) return new GatewayError('method_not_allowed')
  if ((reader.flags & FLAG_EXPECT_OTHER) !== 0) return new GatewayError('expectation_failed')
  if (underscoreHeaders !== 'keep' && reader.dropUnderscores() && underscoreHeaders === 'refuse') {
    return new GatewayError('bad_request', 'a header name has an underscore')
  }
  return undefined
}
