import type { AwsCredentials } from '../../../auth/aws/signature.ts'
import type { ConnectionSettings } from '../../../exchange/connection.ts'
import {
  type FieldPair,
  next,
  type SecretValues,
  type Verdict,
} from '../../../exchange/exchange.ts'
import { forwardingFacts } from '../../../exchange/forwarding.ts'
import { isFieldValue } from '../../../model/header-changes.ts'
import type { PolicyApply, Step } from '../../define.ts'
import { type BackendAuthConfig, shape } from './config.ts'
import { prepareDefaults, signWithDefaults } from './default-credentials.ts'
import { type SigningPlace, signExchange } from './sign.ts'

/** Of this process. */
export const signingPlace: SigningPlace = { region: process.env.AWS_REGION, clock: Date.now }

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

/** Values of Secrets often end in a line break. Throws where no header can carry one. */
function textOf(secrets: SecretValues, digest: string): string {
  const text = new TextDecoder('latin1').decode(secrets.value(digest)).trim()
  if (text === '' || !isFieldValue(text)) {
    throw new Error('a credential is empty, or holds characters that no header can carry')
  }
  return text
}

/** A bare value is a token; one with a scheme is sent as it is. */
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
 * Restores the token that a client policy has verified and removed. If no policy did, a model provider
 * gets the client's own credential back; other backends get the request as it is.
 */
const passesThrough: Step = {
  connection: ofClient,
  onRequest({ request: { headers }, learned, facts }): Verdict {
    const token = learned.jwtToken ?? learned.apiKeyToken
    const own = facts.get(forwardingFacts.clientCredential) as FieldPair | undefined
    if (token !== undefined) headers.set('authorization', `Bearer ${token}`)
    else if (own !== undefined) headers.set(...own)
    return next
  },
}

function signs(credentials: AwsCredentials): Step {
  return {
    connection: ofGateway,
    onRequest: (exchange) => signExchange(exchange, credentials, signingPlace),
  }
}

/** Nothing goes out unsigned where there are no credentials. */
const signsByDefault: Step = {
  connection: ofGateway,
  onRequest: (exchange) => signWithDefaults(exchange, signingPlace, 'required'),
}
