import type { AwsCredentials } from '../../../../engines/auth/aws/signature.ts'
import { choice, type Infer, optional, record, text, union } from '../../../../ground/base/shape.ts'
import type { ConnectionSettings } from '../../../../ground/exchange/connection.ts'
import {
  type Callouts,
  type Exchange,
  type FieldPair,
  next,
  type SecretValues,
  type Verdict,
} from '../../../../ground/exchange/exchange.ts'
import { forwardingExtensions } from '../../../../ground/exchange/forwarding.ts'
import type { PolicyHost } from '../../../../ground/exchange/rate-limits.ts'
import { isFieldValue } from '../../../../ground/model/header-changes.ts'
import { ConsentStep } from '../../../consent/consent-step.ts'
import { UserGrants } from '../../../consent/user-grants.ts'
import { AwsRole } from '../../../credentials/aws-role.ts'
import { azureStep, gcpStep } from '../../../credentials/cloud-tokens.ts'
import {
  cloudShapes,
  further,
  type GrantConfig,
  grantShapes,
  jwtSignShape,
  placementShape,
  type UserConsentConfig,
  userConsentShape,
} from '../../../credentials/config.ts'
import { ProofKey } from '../../../credentials/dpop.ts'
import { GrantStep } from '../../../credentials/grant-step.ts'
import { grantOf } from '../../../credentials/grants.ts'
import { JwtSigner } from '../../../credentials/jwt-signer.ts'
import { type Placement, placementOf } from '../../../credentials/placement.ts'
import { TokenEndpoint } from '../../../credentials/token-endpoint.ts'
import { keyringOf } from '../../../sign-in/keyring.ts'
import type { PolicyApply, Step } from '../../define.ts'
import { ownAws, prepareDefaults, signWithDefaults } from './default-credentials.ts'
import { type SigningContext, signExchange } from './sign.ts'

const scope = { serviceName: optional(text), region: optional(text) } as const

const shapes = {
  /** Sends the value. */
  value: record({
    type: choice('value'),
    digest: text,
    location: optional(placementShape),
    ...further,
  }),
  /** Sends the client's token, which an authentication policy has verified and removed. */
  passthrough: record({
    type: choice('passthrough'),
    location: optional(placementShape),
    ...further,
  }),
  aws: record({
    type: choice('aws'),
    accessKey: text,
    secretKey: text,
    sessionToken: optional(text),
    ...scope,
    ...further,
  }),
  /** Signs with the AWS credentials of the proxy's environment. */
  awsDefault: record({ type: choice('awsDefault'), ...scope, ...further }),
  ...cloudShapes,
  ...grantShapes,
  jwtSign: jwtSignShape,
  userConsent: userConsentShape,
  /** Sends only `credentials`. */
  none: record({ type: choice('none'), ...further }),
} as const

/** The compiled form that proxies receive. Secrets are referred to by the digests of their values. */
export type BackendAuthConfig = Infer<(typeof shapes)[keyof typeof shapes]>
export const shape = union<'type', BackendAuthConfig>('type', shapes)

/** Region and clock of this process. */
export const signingContext: SigningContext = { region: process.env.AWS_REGION, clock: Date.now }

const ofGateway: ConnectionSettings = { credentials: 'gateway' }
const bound: ConnectionSettings = { credentials: 'gateway', bindsTokens: true }
const ofClient: ConnectionSettings = { credentials: 'client' }

const apply: PolicyApply<BackendAuthConfig> = {
  shape,
  bind(config, callouts, secrets, host): Step {
    const own =
      config.type === 'userConsent'
        ? consented(config, callouts, secrets, host)
        : methodStep(config, callouts, secrets)
    const others = (config.credentials ?? []).map(({ value, location }) => ({
      place: placementOf(location),
      text: textOf(secrets, value),
    }))
    if (others.length === 0) return own
    // Before the own step, because signatures cover all other headers.
    const onRequest = (exchange: Exchange) => {
      for (const { place, text } of others) place(exchange.request, text)
      return own.onRequest?.(exchange) ?? next
    }
    return { ...own, onRequest }
  },
}

function methodStep(
  config: Exclude<BackendAuthConfig, UserConsentConfig>,
  callouts: Callouts,
  secrets: SecretValues,
): Step {
  switch (config.type) {
    case 'value':
      return sends(placementOf(config.location), textOf(secrets, config.digest))
    case 'passthrough':
      return passesThrough(placementOf(config.location))
    case 'aws': {
      const sessionToken = config.sessionToken && textOf(secrets, config.sessionToken)
      const own = {
        accessKeyId: textOf(secrets, config.accessKey),
        secretAccessKey: textOf(secrets, config.secretKey),
        ...(sessionToken && { sessionToken }),
      }
      return signs(own, contextOf(config))
    }
    case 'awsDefault':
      prepareDefaults()
      return signsByDefault(contextOf(config))
    case 'awsRole': {
      const context = contextOf(config)
      const role = new AwsRole(config, ownAws, (exchange, found) =>
        signExchange(exchange, found, context),
      )
      return { connection: ofGateway, onRequest: (exchange) => role.onRequest(exchange) }
    }
    case 'azure':
      return { connection: ofGateway, onRequest: azureStep(config, secrets) }
    case 'gcp':
      return { connection: ofGateway, onRequest: gcpStep(config, secrets) }
    case 'jwtSign': {
      const signer = new JwtSigner(config, secrets)
      return { connection: ofGateway, onRequest: (exchange) => signer.onRequest(exchange) }
    }
    case 'none':
      return {}
    default:
      return granted(config, callouts, secrets)
  }
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

function sends(place: Placement, credential: string): Step {
  return {
    connection: ofGateway,
    onRequest({ request }): Verdict {
      place(request, credential)
      return next
    },
  }
}

/**
 * Restores the client's token if an authentication policy has verified and removed it. Otherwise model
 * providers get the credential that the client sent, and other backends get the request unchanged.
 */
const passesThrough = (place: Placement): Step => ({
  connection: ofClient,
  onRequest({ request, learned, extensions }): Verdict {
    const token = learned.jwtToken ?? learned.apiKeyToken
    const own = extensions.get(forwardingExtensions.clientCredential) as FieldPair | undefined
    if (token !== undefined) place(request, token)
    else if (own !== undefined) request.headers.set(...own)
    return next
  },
})

function consented(
  config: UserConsentConfig,
  callouts: Callouts,
  secrets: SecretValues,
  host: PolicyHost,
): Step {
  const endpoint = new TokenEndpoint(config.endpoint, callouts, secrets)
  const keyring = keyringOf(config.keys, secrets, host)
  const step = new ConsentStep(new UserGrants(config, endpoint, keyring))
  return grantingStep(step, config)
}

function granted(config: GrantConfig, callouts: Callouts, secrets: SecretValues): Step {
  const key = config.dpop === true ? ProofKey.generate() : undefined
  const step = new GrantStep(grantOf(config, callouts, secrets, key), config, key)
  return grantingStep(step, config)
}

const grantingStep = (
  step: GrantStep | ConsentStep,
  { dpop }: Pick<GrantConfig, 'dpop'>,
): Step => ({
  connection: dpop === true ? bound : ofGateway,
  onRequest: (exchange) => step.onRequest(exchange),
  onBackendResponse: (exchange, status, headers) =>
    step.onBackendResponse(exchange, status, headers),
})

/** Returns the context of signatures for a backend. */
function contextOf({
  serviceName,
  region,
}: {
  readonly serviceName?: string
  readonly region?: string
}): SigningContext {
  return {
    region: region ?? signingContext.region,
    clock: signingContext.clock,
    own: { service: serviceName, region },
  }
}

function signs(credentials: AwsCredentials, context: SigningContext): Step {
  return {
    connection: ofGateway,
    onRequest: (exchange) => signExchange(exchange, credentials, context),
  }
}

/** Requests without AWS credentials fail; they are not sent unsigned. */
const signsByDefault = (context: SigningContext): Step => ({
  connection: ofGateway,
  onRequest: (exchange) => signWithDefaults(exchange, context, 'required'),
})
