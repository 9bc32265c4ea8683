import { parseDurationMs } from '../../../../ground/base/duration.ts'
import { choice, type Infer, object, optional } from '../../../../ground/schema/field.ts'
import { duration } from '../../../../ground/schema/strings.ts'
import { definePolicy } from '../../define.ts'

const schema = object('BackendHTTP', {
  version: optional(
    choice('HTTPVersion', { HTTP1: 'HTTP/1.1', HTTP2: 'HTTP/2' }),
    'Version of HTTP to the backend. If not set: appProtocol of the Service port; else HTTP2 for gRPC; else the version of the client over plaintext and HTTP1 for clients over TLS.',
  ),
  requestTimeout: optional(
    duration,
    'Timeout of one attempt, until the whole response is received.',
  ),
})

export function compile({ version, requestTimeout }: Infer<typeof schema>) {
  return { config: { version, requestTimeoutMs: parseDurationMs(requestTimeout) }, problems: [] }
}

/** Sets the HTTP version for the backend and the timeout of one attempt. */
export const backendHttp = definePolicy({
  section: 'backend',
  field: 'http',
  schema,
  doc: 'HTTP settings of connections to the backend.',
  security: false,
  compile,
  apply: () => import('./apply.ts'),
})
