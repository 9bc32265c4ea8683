/** Checks the tokens that clients send (RFC 6750, RFC 8705, RFC 9449), and removes them from requests. */
import { ambiguous, none, schemeCredentialsOf } from '../../../engines/auth/authorization-header.ts'
import type { Claims } from '../../../engines/auth/jwt/token.ts'
import {
  type Exchange,
  type FieldPair,
  next,
  type RespondVerdict,
  type Verdict,
} from '../../../ground/exchange/exchange.ts'
import type { LearnedRecord } from '../../../ground/exchange/learned.ts'
import { addNote } from '../../../ground/exchange/notes.ts'
import type { PolicyHost } from '../../../ground/exchange/rate-limits.ts'
import { type ClientView, metadataPrefix } from '../../backends/mcp/auth/oauth-metadata.ts'
import { ResourceServer } from '../../backends/mcp/auth/resource-server.ts'
import { clientOrigin } from '../../tokens/client-origin.ts'
import { bindingOf, certificateProblem } from '../../tokens/confirmation.ts'
import type { Answer } from '../../tokens/introspection.ts'
import { type CredentialLocation, locationOf } from '../../tokens/location.ts'
import { type ProofProblem, Proofs } from '../../tokens/proofs.ts'
import { TokenChecker } from '../../tokens/token-checker.ts'
import type { PolicyApply, Step } from '../define.ts'
import { type JwtConfig, shape } from './config.ts'
import { invalidProof, nonceRequired, Refusals, unavailable } from './refusals.ts'

/** A token as it was sent. */
interface SentToken {
  readonly text: string
  /** The scheme of the Authorization header; undefined if the token is in another place. */
  readonly scheme: 'Bearer' | 'DPoP' | undefined
}

/** Set if the client sends proofs, whose next nonce it gets with the response. */
const provenExtension = 'jwt.proven'

class JwtStep implements Step {
  readonly #config: JwtConfig
  readonly #checker: TokenChecker
  readonly #place: CredentialLocation
  readonly #proofs: Proofs
  readonly #refusals: Refusals
  readonly #host: PolicyHost
  /** Set if the route is an MCP server whose clients sign in. */
  readonly #resource: ResourceServer | undefined
  readonly servesOAuthMetadata: boolean

  constructor(
    config: JwtConfig,
    checker: TokenChecker,
    host: PolicyHost,
    resource: ResourceServer | undefined,
  ) {
    this.#config = config
    this.#host = host
    this.#resource = resource
    this.servesOAuthMetadata = resource !== undefined
    this.#checker = checker
    this.#place = locationOf(config.location)
    this.#proofs = new Proofs(host, config.dpop?.nonces === true)
    this.#refusals = new Refusals(config)
  }

  onRequest(exchange: Exchange): Verdict | Promise<Verdict> {
    return this.#serveMetadata(exchange) ?? this.#check(exchange)
  }

  #serveMetadata(exchange: Exchange): Verdict | Promise<Verdict> | undefined {
    if (this.#resource === undefined) return undefined
    if (!exchange.request.path.startsWith(metadataPrefix)) return undefined
    return this.#resource.serve(exchange, clientView(exchange, this.#host))
  }

  #check(exchange: Exchange): Verdict | Promise<Verdict> {
    const token = this.#find(exchange)
    if (token === none) {
      return this.#config.mode === 'Strict' ? this.#refuse(exchange, this.#refusals.missing) : next
    }
    if (token === ambiguous) {
      const why = 'the token is invalid or malformed'
      return this.#refuse(exchange, this.#refusals.invalid(why, 'several tokens'))
    }
    const answer = this.#checker.check(token.text)
    return answer instanceof Promise
      ? answer.then((settled) => this.#settle(exchange, token, settled))
      : this.#settle(exchange, token, answer)
  }

  #find(exchange: Exchange): SentToken | typeof none | typeof ambiguous {
    const isElsewhere = this.#config.location !== undefined
    const found = this.#place.find(exchange)
    if (typeof found === 'string') {
      return { text: found, scheme: isElsewhere ? undefined : 'Bearer' }
    }
    if (isElsewhere || found === ambiguous) return found
    const bound = schemeCredentialsOf(exchange.request.headers, 'authorization', 'dpop')
    return typeof bound === 'string' ? { text: bound, scheme: 'DPoP' } : bound
  }

  #settle(exchange: Exchange, token: SentToken, answer: Answer): Verdict | Promise<Verdict> {
    if ('unavailable' in answer) return this.#refuse(exchange, unavailable(answer.unavailable))
    if ('problem' in answer) {
      return this.#refuse(exchange, this.#refusals.invalid(answer.problem))
    }
    const { claims } = answer
    const binding = bindingOf(claims)
    const { proofKey } = binding
    const problem =
      certificateProblem(binding, exchange.peerCertificate) ??
      this.#schemeProblem(token, proofKey !== undefined)
    if (problem !== undefined) return this.#refuse(exchange, this.#refusals.invalid(problem))
    if (proofKey === undefined) return this.#accept(exchange, token, claims)
    return this.#proofs
      .check(exchange, token.text, proofKey)
      .then((failed) =>
        failed === undefined
          ? this.#accept(exchange, token, claims, true)
          : this.#refuse(exchange, this.#proofRefusal(failed)),
      )
  }

  /** A stolen token must not be usable without its key, so a bound one is no bearer token (RFC 9449 section 7.2). */
  #schemeProblem({ scheme }: SentToken, isBound: boolean): string | undefined {
    if (isBound) {
      return scheme === 'Bearer' ? 'the token is bound to a key; use the scheme DPoP' : undefined
    }
    const needsKey = scheme === 'DPoP' || this.#config.dpop?.required === true
    return needsKey ? 'the token is not bound to a key of the client' : undefined
  }

  #proofRefusal(failed: ProofProblem): RespondVerdict {
    if (failed === 'full') return unavailable('too many proofs are remembered')
    return failed === 'nonce' ? nonceRequired(this.#proofs.nextNonce) : invalidProof(failed.why)
  }

  #accept(exchange: Exchange, { text }: SentToken, claims: Claims, isProven = false): Verdict {
    const { request, learned, extensions } = exchange
    this.#place.remove(request)
    if (isProven) {
      request.headers.remove('dpop')
      if (this.#config.dpop?.nonces === true) extensions.set(provenExtension, true)
    }
    // Claims are parsed from JSON, so they are plain data.
    learned.jwt = claims as LearnedRecord
    learned.jwtToken = text
    return next
  }

  #refuse(exchange: Exchange, verdict: RespondVerdict): Verdict {
    if (this.#config.mode !== 'Permissive') return this.#withMetadata(exchange, verdict)
    addNote(exchange, 'traffic.jwtAuthentication', verdict.detail ?? verdict.reason)
    return next
  }

  /** Adds to each challenge where MCP clients find the authorization server (RFC 9728 section 5.1). */
  #withMetadata(exchange: Exchange, verdict: RespondVerdict): RespondVerdict {
    const resource = this.#resource
    if (resource === undefined || verdict.status !== 401) return verdict
    const found = resource.metadataParameter(clientView(exchange, this.#host))
    const headers = verdict.headers?.map(([name, value]): FieldPair => {
      const isChallenge = name === 'www-authenticate'
      return [name, isChallenge ? `${value}, ${found}${resource.scope}` : value]
    })
    return { ...verdict, ...(headers && { headers }) }
  }

  /** Gives the client the nonce for its next request, so that this one needs no second attempt. */
  onResponse({ response, extensions }: Exchange): void {
    if (response === undefined || !extensions.has(provenExtension)) return
    const nonce = this.#proofs.nextNonce
    if (nonce !== undefined) response.headers.set('dpop-nonce', nonce)
  }
}

/** The policy runs before anything changes the request, so its head is what the client sent. */
function clientView(exchange: Exchange, host: PolicyHost): ClientView {
  const { request } = exchange
  return {
    origin: clientOrigin(exchange, host),
    path: request.path,
    query: request.query ?? '',
    sessionKey: host.sessionKey ?? noKey,
  }
}

const noKey = () => undefined

const apply: PolicyApply<JwtConfig> = {
  shape,
  bind(config, callouts, secrets, host) {
    const resource = config.mcp && new ResourceServer(config.mcp, callouts, secrets, host)
    const checker = new TokenChecker(config.providers, callouts, secrets)
    return new JwtStep(config, checker, host, resource)
  },
}

export default apply
