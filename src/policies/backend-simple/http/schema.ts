import { choice, type Infer, object, optional } from '../../../schema/field.ts'
import { sectionField } from '../../../schema/section-field.ts'
import { duration } from '../../../schema/strings.ts'

export const backendHttp = object('BackendHTTP', {
  version: optional(
    choice('HTTPVersion', { HTTP1: 'HTTP/1.1', HTTP2: 'HTTP/2' }),
    'Version spoken to the backend. Where unset: appProtocol of the Service port; else HTTP2 for gRPC; else the version of the client over plaintext and HTTP1 for clients over TLS.',
  ),
  requestTimeout: optional(duration, 'Time in which one attempt must give its whole response.'),
})
export type BackendHttpSpec = Infer<typeof backendHttp>

export const backendHttpField = sectionField({
  section: 'backend',
  field: 'http',
  schema: backendHttp,
  doc: 'HTTP settings of connections to the backend.',
})
