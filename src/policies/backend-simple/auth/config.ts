import { choice, optional, record, type Shape, text, union } from '../../../base/shape.ts'
/** Version 1. Secrets stand in it by the digests of their values. */
export type BackendAuthConfig =
  /** Value of the Authorization header. */
  | { readonly type: 'value'; readonly digest: string }
  /** The token of the client, which a policy has verified and taken off. */
  | { readonly type: 'passthrough' }
  | {
      readonly type: 'aws'
      readonly accessKey: string
      readonly secretKey: string
      readonly sessionToken?: string
    }
  /** Credentials of AWS that the place has, in which the proxy runs. */
  | { readonly type: 'awsDefault' }

type Of<Type> = Extract<BackendAuthConfig, { readonly type: Type }>

export const shape: Shape<BackendAuthConfig> = union<'type', BackendAuthConfig>('type', {
  value: record<Of<'value'>>({ type: choice('value'), digest: text }),
  passthrough: record<Of<'passthrough'>>({ type: choice('passthrough') }),
  aws: record<Of<'aws'>>({
    type: choice('aws'),
    accessKey: text,
    secretKey: text,
    sessionToken: optional(text),
  }),
  awsDefault: record<Of<'awsDefault'>>({ type: choice('awsDefault') }),
})
