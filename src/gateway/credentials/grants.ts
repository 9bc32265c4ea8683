/**
 * The grants by which the gateway gets a token for a backend. Each one says, for a request, which token it needs and how
 * to ask for it. Caching, failures and the place of the token are the same for all of them.
 */
import { GatewayError } from '../../ground/errors/index.ts'
import type {
  Callouts,
  Exchange,
  RespondVerdict,
  SecretValues,
} from '../../ground/exchange/exchange.ts'
import { principalDigest } from '../principal/principal.ts'
import { Expression, textOfResult } from '../variables/index.ts'
import type {
  ClientCredentialsConfig,
  CrossAppAccessConfig,
  GrantConfig,
  TokenExchangeConfig,
} from './config.ts'
import type { ProofKey } from './dpop.ts'
import { claimsOf, refuseUser, SentToken } from './sent-token.ts'
import type { TokenRequest } from './token-cache.ts'
import { type IssuedToken, type Parameter, TokenEndpoint } from './token-endpoint.ts'
import { TokenError, unavailable } from './token-error.ts'

/** Returns the token that a request needs, or refuses the request. */
export type Grant = (exchange: Exchange) => TokenRequest | RespondVerdict

const urn = 'urn:ietf:params:oauth:'
const clientCredentials = 'client_credentials'
const tokenExchange = `${urn}grant-type:token-exchange`
const jwtBearer = `${urn}grant-type:jwt-bearer`
const idJag = `${urn}token-type:id-jag`

/** Tokens are bound to `key`, if it is set. Throws if a secret has not arrived, or cannot be used. */
export function grantOf(
  config: GrantConfig,
  callouts: Callouts,
  secrets: SecretValues,
  key?: ProofKey,
): Grant {
  switch (config.type) {
    case 'clientCredentials':
      return ofGateway(config, new TokenEndpoint(config.endpoint, callouts, secrets), key)
    case 'tokenExchange':
      return ofUser(config, new TokenEndpoint(config.endpoint, callouts, secrets), key)
    case 'crossAppAccess':
      return acrossApps(
        config,
        new TokenEndpoint(config.identityProvider, callouts, secrets),
        new TokenEndpoint(config.resourceServer, callouts, secrets),
        key,
      )
  }
}

const repeated = (name: string, values: readonly string[]): readonly Parameter[] =>
  values.map((value) => [name, value])

const scope = (scopes: readonly string[]): readonly Parameter[] =>
  scopes.length === 0 ? [] : [['scope', scopes.join(' ')]]

interface Wanted {
  readonly audiences: readonly string[]
  readonly resources: readonly string[]
  readonly scopes: readonly string[]
}

const wanted = ({ audiences, resources, scopes }: Wanted): readonly Parameter[] => [
  ...repeated('audience', audiences),
  ...repeated('resource', resources),
  ...scope(scopes),
]

const never = () => Number.POSITIVE_INFINITY
const ofNoUser = () => []
const claimsIn = (tokens: readonly string[]) =>
  tokens.map(claimsOf).filter((claims) => claims !== undefined)

/** Client credentials (RFC 6749 section 4.4): one token for all requests. */
function ofGateway(
  config: ClientCredentialsConfig,
  endpoint: TokenEndpoint,
  key: ProofKey | undefined,
): Grant {
  const parameters = [...wanted(config), ...Object.entries(config.parameters)]
  const request: TokenRequest = {
    key: clientCredentials,
    endsAt: never,
    claims: ofNoUser,
    send: () =>
      endpoint.request(clientCredentials, parameters, { key }).catch((error: unknown) => {
        // There is no user whom the server could refuse.
        throw error instanceof TokenError && error.kind === 'refused'
          ? new TokenError('failed', error.message)
          : error
      }),
  }
  return () => request
}

/** When a token of a user expires; never if it does not say so. */
function endOf(token: string): number {
  const exp = claimsOf(token)?.exp
  return typeof exp === 'number' ? exp * 1_000 : Number.POSITIVE_INFINITY
}

/** Token exchange (RFC 8693) and JWT bearer (RFC 7523 section 2.1): a token for each token of a user. */
function ofUser(
  config: TokenExchangeConfig,
  endpoint: TokenEndpoint,
  key: ProofKey | undefined,
): Grant {
  const { grantType, requestedType } = config
  const isExchange = grantType === 'TokenExchange'
  const subject = new SentToken(config.subject)
  const actor = config.actor && new SentToken(config.actor)
  const expressions = Object.entries(config.parameters).map(
    ([name, source]) => [name, new Expression(source)] as const,
  )
  const fixed: readonly Parameter[] = [
    ...wanted(config),
    ...(requestedType === undefined
      ? []
      : [['requested_token_type', requestedType] satisfies Parameter]),
  ]
  return (exchange) => {
    const token = subject.find(exchange)
    if (typeof token !== 'string') return token
    const acting = actor?.find(exchange)
    if (acting !== undefined && typeof acting !== 'string') return acting
    if (config.mayAct && !mayAct(token, acting ?? '')) {
      return refuseUser('the token of the user does not name the actor in may_act')
    }
    const own: Parameter[] = isExchange
      ? [
          ['subject_token', token],
          ['subject_token_type', subject.type],
        ]
      : [['assertion', token]]
    if (acting !== undefined && actor !== undefined) {
      own.push(['actor_token', acting], ['actor_token_type', actor.type])
    }
    for (const [name, expression] of expressions)
      own.push([name, requiredValue(expression, exchange)])
    return {
      key: JSON.stringify([principalDigest(exchange) ?? null, own]),
      endsAt: () => Math.min(endOf(token), acting === undefined ? never() : endOf(acting)),
      claims: () => claimsIn(acting === undefined ? [token] : [token, acting]),
      send: async () => {
        const form = [...own, ...fixed]
        if (!isExchange) return endpoint.request(jwtBearer, form, { key })
        // `N_A` is for tokens that are no access tokens (RFC 8693 section 2.2.1).
        const types = ['bearer', 'n_a'] as const
        const issued = await endpoint.request(
          tokenExchange,
          form,
          key === undefined ? { types } : { key },
        )
        requireSendable(issued, requestedType)
        return issued
      },
    }
  }
}

const unsendable = ['refresh_token', 'id_token', 'saml1', 'saml2', 'id-jag'].map(
  (name) => `${urn}token-type:${name}`,
)

/** A refresh token, or a token for another party, must not reach a backend unless it was asked for. */
function requireSendable({ issuedType }: IssuedToken, requestedType: string | undefined): void {
  if (issuedType === undefined || issuedType === requestedType) return
  if (unsendable.includes(issuedType)) {
    throw unavailable('the token endpoint answers with a token that is not for a backend')
  }
}

/** @throws GatewayError if there is no value, because a parameter may restrict what the token allows */
function requiredValue(expression: Expression, exchange: Exchange): string {
  const value = textOfResult(expression.evaluate(exchange))
  if (value !== undefined) return value
  throw new GatewayError('credentials_failed', 'the expression of a parameter has no value')
}

/** Whether the token of a user says that the actor may act (RFC 8693 section 4.4). */
function mayAct(subject: string, actor: string): boolean {
  const allowed = claimsOf(subject)?.may_act as Readonly<Record<string, unknown>> | undefined
  const acting = claimsOf(actor)
  if (typeof allowed !== 'object' || allowed === null || acting === undefined) return false
  if (typeof allowed.sub !== 'string' || allowed.sub !== acting.sub) return false
  return ['iss', 'client_id'].every(
    (name) => allowed[name] === undefined || allowed[name] === acting[name],
  )
}

/** Identity assertion grant (ID-JAG): the identity provider vouches for the user at the server of the resource. */
function acrossApps(
  config: CrossAppAccessConfig,
  identityProvider: TokenEndpoint,
  resourceServer: TokenEndpoint,
  key: ProofKey | undefined,
): Grant {
  const { audience, resources, scopes, accessTokenScopes } = config
  const subject = new SentToken(config.subject)
  async function send(token: string): Promise<IssuedToken> {
    const assertion = await identityProvider.request(
      tokenExchange,
      [
        ['subject_token', token],
        ['subject_token_type', subject.type],
        ['requested_token_type', idJag],
        ...wanted({ audiences: [audience], resources, scopes }),
      ],
      { types: ['n_a'] },
    )
    if (assertion.issuedType !== idJag) {
      throw unavailable('the identity provider answers with another token than an ID-JAG')
    }
    const form: readonly Parameter[] = [['assertion', assertion.value], ...scope(accessTokenScopes)]
    return resourceServer.request(jwtBearer, form, { key })
  }
  return (exchange) => {
    const token = subject.find(exchange)
    if (typeof token !== 'string') return token
    return {
      key: JSON.stringify([principalDigest(exchange) ?? null, token]),
      endsAt: () => endOf(token),
      claims: () => claimsIn([token]),
      send: () => send(token),
    }
  }
}
