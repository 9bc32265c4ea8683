/** The settings that every kind of backend takes. */
import { type Infer, object, optional } from '../../schema/field.ts'
import { backendAuth, backendAuthField } from './auth/schema.ts'
import { backendHttp, backendHttpField } from './http/schema.ts'
import { backendTcp, backendTcpField } from './tcp/schema.ts'
import { backendTls, backendTlsField } from './tls/schema.ts'

const backendSimpleFields = {
  tcp: optional(backendTcp, backendTcpField.doc),
  tls: optional(backendTls, backendTlsField.doc),
  http: optional(backendHttp, backendHttpField.doc),
  auth: optional(backendAuth, backendAuthField.doc),
} as const

export const backendSimple = object('BackendSimple', backendSimpleFields)
export type BackendSimpleSpec = Infer<typeof backendSimple>
