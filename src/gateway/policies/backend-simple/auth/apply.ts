import type { AwsCredentials } from '../../../../engines/auth/aws/signature.ts'
import { choice, type Infer, optional, record, text, union } from '../../../../ground/base/shape.ts'
import type { ConnectionSettings } from '../../../../ground/exchange/connection.ts'
import {
  type FieldPair,
  next,
  type SecretValues,
  type Verdict,
} from '../../../../ground/exchange/exchange.ts'
import { forwardingExtensions } from '../../../../ground/exchange/forwarding.ts'
import { isFieldValue } from '../../../../ground/model/header-changes.ts'
import type { PolicyApply, Step } from '../../define.ts'
import { prepareDefaults, signWithDefaults } from './default-credentials.ts'
import { type SigningContext, signExchange } from './sign.ts'

const shapes = {
  /** Sends the value as Authorization header. */
  value: record({ type: choice('value'), digest: text }),
  /** Sends the client's token, which an authentication policy has verified and removed. */
  passthrough: record({ type: choice('passthrough') }),
  aws: record({
    type: choice('aws'),
    accessKey: text,
    secretKey: text,
    sessionToken: optional(text),
  }),
  /** Signs with the AWS credentials of the proxy's environment. */
  awsDefault: record({ type: choice('awsDefault') }),
} as const

/** The compiled form that proxies receive. Secrets are referred to by the digests of their values. */
export type BackendAuthConfig = Infer<(typeof shapes)[keyof typeof shapes]>
export const shape = union<'type', BackendAuthConfig>('type', shapes)

/** Region and clock of this process. */
export const signingContext: SigningContext = { region: process.env.AWS_REGION, clock: Date.now }

const ofGateway: ConnectionSettings = { credentials: 'gateway' }
const ofClient: ConnectionSettings = { credentials: 'client' }

const apply: PolicyApply<BackendAuthConfig> = {
  shape,
  bind(config, _callouts, secrets): Step {
    switch (config.type) {
      case 'value':
        return sends(authorizationOf(textOf(secrets, config.digest)))
      case 'passthrough':
        return passesThrough
      case 'aws': {
        const sessionToken = config.sessionToken && textOf(secrets, config.sessionToken)
        return signs({
          accessKeyId: textOf(secrets, config.accessKey),
          secretAccessKey: textOf(secrets, config.secretKey),
          ...(sessionToken && { sessionToken }),
        })
      }
      case 'awsDefault':
        prepareDefaults()
        return signsByDefault
    }
  },
}

export default apply

/** Trims a secret, since many end in a line break. Throws if the value is not valid in a header. */
function textOf(secrets: SecretValues, digest: string): string {
  const text = new TextDecoder('latin1').decode(secrets.value(digest)).trim()
  if (text === '' || !isFieldValue(text)) {
    throw new Error('a credential is empty, or holds characters that no header can carry')
  }
  return text
}

/** A value without a scheme is sent as a bearer token; one with a scheme is sent unchanged. */
const authorizationOf = (text: string): string => (/\s/.test(text) ? text : `Bearer ${text}`)

function sends(authorization: string): Step {
  return {
    connection: ofGateway,
    onRequest({ request }): Verdict {
      request.headers.set('authorization', authorization)
      return next
    },
  }
}

/**
 * Restores the client's token if an authentication policy has verified and removed it. Otherwise model
 * providers get the credential that the client sent, and other backends get the request unchanged.
 */
const passesThrough: Step = {
  connection: ofClient,
  onRequest({ request: { headers }, learned, extensions }): Verdict {
    const token = learned.jwtToken ?? learned.apiKeyToken
    const own = extensions.get(forwardingExtensions.clientCredential) as FieldPair | undefined
    if (token !== undefined) headers.set('authorization', `Bearer ${token}`)
    else if (own !== undefined) headers.set(...own)
    return next
  },
}

function signs(credentials: AwsCredentials): Step {
  return {
    connection: ofGateway,
    onRequest: (exchange) => signExchange(exchange, credentials, signingContext),
  }
}

/** Requests without AWS credentials fail; they are not sent unsigned. */
const signsByDefault: Step = {
  connection: ofGateway,
  onRequest: (exchange) => signWithDefaults(exchange, signingContext, 'required'),
}
