/** Adds the token that a user has allowed, or tells the client where the user can allow it. */
import {
  type Exchange,
  type HeaderFields,
  next,
  type RespondVerdict,
  refuse,
  type Verdict,
} from '../../ground/exchange/exchange.ts'
import { Prover } from '../credentials/dpop.ts'
import { toVerdict } from '../credentials/grant-step.ts'
import { type Placement, placementOf } from '../credentials/placement.ts'
import { principalName, userDigest } from '../principal/principal.ts'
import { registerGrants } from './registry.ts'
import { sealTicket } from './tickets.ts'
import type { GrantedToken, GrantOwner, UserGrants } from './user-grants.ts'

const reason = 'UserConsent'
let steps = 0

export class ConsentStep {
  readonly #grants: UserGrants
  readonly #place: Placement
  readonly #used = `consent.used.${steps++}`
  readonly #prover = new Prover()

  constructor(grants: UserGrants) {
    this.#grants = grants
    this.#place = placementOf(grants.config.location)
    registerGrants(grants)
  }

  onRequest(exchange: Exchange): Verdict | Promise<Verdict> {
    const owner = ownerOf(exchange)
    if (owner === undefined) return noUser
    const found = this.#grants.find(owner)
    return found instanceof Promise
      ? found.then((token) => this.#use(exchange, owner, token)).catch(toVerdict)
      : this.#use(exchange, owner, found)
  }

  #use(
    exchange: Exchange,
    owner: GrantOwner,
    token: GrantedToken | undefined,
  ): Verdict | Promise<Verdict> {
    if (token === undefined) return this.#ask(owner)
    const { value, key } = token
    exchange.extensions.set(this.#used, value)
    this.#place(exchange.request, key === undefined ? value : `DPoP ${value}`)
    return key === undefined ? next : this.#prover.prove(exchange, key, value).then(() => next)
  }

  #ask({ id }: GrantOwner): RespondVerdict {
    const { redirectURI } = this.#grants.config
    const ticket = sealTicket(this.#grants, 'link', { owner: id })
    if (ticket === undefined) return refuse(503, reason, 'the gateway does not have its key yet')
    const url = `${redirectURI}?ticket=${ticket}`
    const message = `The user has not allowed access to ${this.#grants.config.label}. Open the link to allow it: ${url}`
    const body = { error: 'consent_required', error_description: message, consent_url: url }
    return {
      kind: 'respond',
      status: 401,
      headers: [
        ['content-type', 'application/json'],
        ['cache-control', 'no-store'],
        [
          'www-authenticate',
          `Bearer realm="Restricted", error="consent_required", consent_url="${url}"`,
        ],
      ],
      body: JSON.stringify(body),
      reason,
      detail: 'the user has not allowed access',
      consent: { url, message: `Allow access to ${this.#grants.config.label}` },
    }
  }

  onBackendResponse(
    exchange: Exchange,
    status: number,
    headers: Pick<HeaderFields, 'get' | 'getAll' | 'remove'>,
  ): boolean {
    if (this.#grants.config.dpop === true && this.#prover.learn(exchange, status, headers)) {
      return true
    }
    if (status !== 401) return false
    const token = exchange.extensions.get(this.#used)
    const owner = ownerOf(exchange)
    if (owner !== undefined && typeof token === 'string') this.#grants.refuse(owner, token)
    return false
  }
}

const noUser: RespondVerdict = {
  ...refuse(401, reason, 'the backend needs a signed-in user', 'the request has no principal'),
  headers: [['www-authenticate', 'Bearer realm="Restricted"']],
}

/** Who the request belongs to; undefined if no credentials were verified. */
export function ownerOf(exchange: Exchange): GrantOwner | undefined {
  const id = userDigest(exchange)
  return id === undefined ? undefined : { id, name: principalName(exchange) ?? 'unnamed' }
}
