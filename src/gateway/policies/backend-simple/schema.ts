/** The policies for services that guards call. */
import { object, optional } from '../../../ground/schema/field.ts'
import { backendAuth } from './auth/index.ts'
import { keyAuthSchema } from './auth/schema.ts'
import { backendHttp } from './http/index.ts'
import { backendTcp } from './tcp/index.ts'
import { backendTls } from './tls/index.ts'

export const backendSimple = object('BackendSimple', {
  tcp: optional(backendTcp.schema, backendTcp.doc),
  tls: optional(backendTls.schema, backendTls.doc),
  http: optional(backendHttp.schema, backendHttp.doc),
  auth: optional(keyAuthSchema, backendAuth.doc),
})
