/**
 * The page on which a user allows the gateway to act for them at a service (RFC 6749 section 4.1, with PKCE), and to
 * which the authorization server of the service sends the browser back:
 *
 *   GET   ?ticket=…         who asks, and a button
 *   POST  ?ticket=…         to the authorization server
 *   GET   ?code=…&state=…   stores the tokens
 *   GET                     whether the user has allowed access, and a button to remove it
 *   POST  ?remove           removes the access of the user who is signed in
 *
 * The user who is signed in here must be the one for whom the link was made: otherwise a link would let its sender store
 * an account of his own for another user, or get access to the other user's account.
 */
import { createHash, randomBytes } from 'node:crypto'
import { GatewayError } from '../../ground/errors/index.ts'
import {
  type Exchange,
  next,
  type RequestHead,
  type RespondVerdict,
  type Verdict,
} from '../../ground/exchange/exchange.ts'
import { ProofKey } from '../credentials/dpop.ts'
import { TokenError } from '../credentials/token-error.ts'
import { isSameSite, originOf } from '../sign-in/navigation.ts'
import { page, parametersOf, problem, redirect } from '../sign-in/responses.ts'
import { ownerOf } from './consent-step.ts'
import { grantsAt } from './registry.ts'
import { revokeNow } from './revocations.ts'
import { openTicket, sealTicket } from './tickets.ts'
import type { GrantOwner, UserGrants } from './user-grants.ts'

/** Serves the pages; other requests pass. */
export function serveConsent(exchange: Exchange): Verdict | Promise<Verdict> {
  const { request } = exchange
  const services = grantsAt(`${originOf(request)}${request.path}`)
  if (services.length === 0) return next
  const owner = ownerOf(exchange)
  if (owner === undefined) return problem(401, 'sign in first', 'the request has no principal')
  const parameters = parametersOf(request)
  if (parameters.has('state')) return finish(services, owner, request, parameters)
  if (!parameters.has('ticket')) return manage(services, owner, request).catch(failed)
  const found = findTicket(services, 'link', parameters.get('ticket') ?? '')
  if (found === undefined)
    return problem(400, 'this link is no longer valid; repeat the request to get a new one')
  const { grants, ticket } = found
  if (ticket.owner !== owner.id) return foreign
  if (request.method === 'GET') return page(question(grants, owner), [], 'asked the user')
  if (request.method !== 'POST') return problem(405, 'use GET or POST')
  if (!isSameSite(request)) return foreignForm
  return begin(grants, owner).catch(failed)
}

/** Shows or removes the access that the user has allowed. */
async function manage(
  services: readonly UserGrants[],
  owner: GrantOwner,
  request: RequestHead,
): Promise<RespondVerdict> {
  const isRemoval = request.method === 'POST'
  if (!isRemoval && request.method !== 'GET') return problem(405, 'use GET or POST')
  if (isRemoval && !isSameSite(request)) return foreignForm
  // Several versions of a policy may have a grant.
  const found = await Promise.all(services.map((grants) => grants.allowedAt(owner)))
  const at = found.find((one) => one !== undefined)
  const label = services[0]?.config.label ?? ''
  if (!isRemoval) return page(state(label, owner, at), [], 'showed the user the access')
  for (const grants of services) {
    const queued = await grants.remove(owner)
    if (queued !== undefined) void revokeNow(grants, queued)
  }
  return page(removed(label), [], 'the user has removed access')
}

const foreignForm = problem(403, 'forms of other sites are not accepted')

/** Finds the service that has sealed a text. */
function findTicket(services: readonly UserGrants[], kind: 'link' | 'state', text: string) {
  for (const grants of services) {
    const ticket = openTicket(grants, kind, text)
    if (ticket !== undefined) return { grants, ticket }
  }
  return undefined
}

const foreign = problem(403, 'this link is for another user')

async function begin(grants: UserGrants, { id }: GrantOwner): Promise<RespondVerdict> {
  const { config, endpoint } = grants
  const verifier = randomBytes(32).toString('base64url')
  const state = sealTicket(grants, 'state', { owner: id, verifier })
  if (state === undefined) return problem(503, 'the gateway does not have its key yet')
  const { authorization_endpoint } = await endpoint.server()
  const url = new URL(config.authorizationEndpoint ?? authorization_endpoint ?? '')
  const fields = {
    ...config.parameters,
    response_type: 'code',
    client_id: config.endpoint.clientAuth?.clientId ?? '',
    redirect_uri: config.redirectURI,
    state,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    ...(config.scopes.length > 0 && { scope: config.scopes.join(' ') }),
  }
  for (const [name, value] of Object.entries(fields)) url.searchParams.set(name, value)
  for (const resource of config.resources) url.searchParams.append('resource', resource)
  return redirect(url.href, [], 'to the authorization server')
}

function finish(
  services: readonly UserGrants[],
  owner: GrantOwner,
  { method }: RequestHead,
  parameters: URLSearchParams,
): RespondVerdict | Promise<RespondVerdict> {
  if (method !== 'GET') return problem(405, 'use GET')
  const once = (name: string) => {
    const [value, ...others] = parameters.getAll(name)
    return others.length === 0 ? value : undefined
  }
  const found = findTicket(services, 'state', once('state') ?? '')
  const verifier = found?.ticket.verifier
  if (found === undefined || verifier === undefined) {
    return problem(400, 'this took too long; begin again')
  }
  if (found.ticket.owner !== owner.id) return foreign
  return exchangeCode(found.grants, owner, verifier, once).catch(failed)
}

async function exchangeCode(
  grants: UserGrants,
  owner: GrantOwner,
  verifier: string,
  once: (name: string) => string | undefined,
): Promise<RespondVerdict> {
  const { config, endpoint } = grants
  const { issuer, authorization_response_iss_parameter_supported: hasIssuer } =
    await endpoint.server()
  const iss = once('iss')
  // An answer of another server must not be exchanged here (RFC 9207).
  const isKnown = config.endpoint.issuer !== undefined
  if (isKnown && (iss === undefined ? hasIssuer === true : iss !== issuer)) {
    return problem(
      400,
      'the response is from another authorization server',
      'iss is not the issuer',
    )
  }
  if (once('error') !== undefined) return problem(403, 'access was not allowed')
  const code = once('code')
  if (code === undefined) return problem(400, 'the response has no code')
  const key = config.dpop === true ? ProofKey.generate() : undefined
  const issued = await endpoint.request(
    'authorization_code',
    [
      ['code', code],
      ['redirect_uri', config.redirectURI],
      ['code_verifier', verifier],
    ],
    { key },
  )
  await grants.save(owner, issued, key)
  return page(done, [], 'the user has allowed access')
}

function failed(error: unknown): RespondVerdict {
  if (error instanceof TokenError) {
    return problem(502, 'the authorization server issued no token; begin again', error.message)
  }
  if (error instanceof GatewayError) return problem(503, 'try again later', error.message)
  throw error
}

const escaped = (text: string): string =>
  text.replaceAll(/[&<>"']/g, (found) => `&#${found.charCodeAt(0)};`)

const question = ({ config }: UserGrants, { name }: GrantOwner): string =>
  `<!doctype html><title>Allow access</title><p>You are ${escaped(name)}. Programs that use this gateway in your name ask for access to your account at ${escaped(config.label)}${
    config.scopes.length === 0 ? '' : ` (${escaped(config.scopes.join(', '))})`
  }.<form method="post"><button>Continue</button></form>`

const done =
  '<!doctype html><title>Access allowed</title><p>Access is allowed. You can close this page, and repeat what you were doing.'

const state = (label: string, { name }: GrantOwner, at: number | undefined): string =>
  `<!doctype html><title>Access</title><p>You are ${escaped(name)}. ${
    at === undefined
      ? `Programs have no access to your account at ${escaped(label)} through this gateway. If one asks for it, open the link that it shows.`
      : `Programs that use this gateway in your name have access to your account at ${escaped(label)} since ${new Date(at).toISOString().slice(0, 10)}.<form method="post" action="?remove"><button>Remove access</button></form>`
  }`

const removed = (label: string): string =>
  `<!doctype html><title>Access removed</title><p>Programs that use this gateway in your name have no access to your account at ${escaped(label)} any more.`
