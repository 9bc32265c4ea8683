/** Temporary credentials of an AWS role, whose session names the user of the request. */
import { ServiceRefusal } from '../../engines/auth/access-token.ts'
import { assumeRole, type RoleSession } from '../../engines/auth/aws/assumed-role.ts'
import type { AwsCredentials } from '../../engines/auth/aws/signature.ts'
import type { Exchange, RespondVerdict, Verdict } from '../../ground/exchange/exchange.ts'
import { Expression, textOfResult } from '../variables/index.ts'
import type { AwsRoleConfig } from './config.ts'
import { toVerdict } from './grant-step.ts'
import { refuseUser } from './sent-token.ts'
import { type Issued, TokenCache } from './token-cache.ts'
import { TokenError, unavailable } from './token-error.ts'

/** What AWS accepts as name of a session, and as value of a tag. */
const sessionNameForm = /^[\w+=,.@-]{2,64}$/
const tagForm = /^[\p{L}\p{Z}\p{N}_.:/=+\-@]{0,256}$/u

const cacheConfig = { maxEntries: 8_192, defaultMs: 300_000 }

type Use = (exchange: Exchange, credentials: AwsCredentials) => Verdict | Promise<Verdict>

type FindOwn = () => AwsCredentials | undefined | Promise<AwsCredentials | undefined>

interface Tag {
  readonly key: string
  readonly value: string | Expression
}

export class AwsRole {
  readonly #config: AwsRoleConfig
  readonly #name: string | Expression
  readonly #tags: readonly Tag[]
  readonly #cache = new TokenCache<AwsCredentials>(cacheConfig)
  /** Finds the credentials of the gateway, which assume the role. */
  readonly #own: FindOwn
  readonly #sign: Use

  constructor(config: AwsRoleConfig, own: FindOwn, sign: Use) {
    const { sessionName = 'sluice', sessionNameExpression, tags } = config
    this.#config = config
    this.#own = own
    this.#sign = sign
    this.#name =
      sessionNameExpression === undefined ? sessionName : new Expression(sessionNameExpression)
    this.#tags = tags.map(({ key, value = '', expression }) => ({
      key,
      value: expression === undefined ? value : new Expression(expression),
    }))
  }

  onRequest(exchange: Exchange): Verdict | Promise<Verdict> {
    const session = this.#sessionFor(exchange)
    if ('kind' in session) return session
    const found = this.#cache.get({
      key: JSON.stringify(session),
      endsAt: () => Number.POSITIVE_INFINITY,
      claims: () => [],
      send: () => this.#assume(session),
    })
    return found instanceof Promise
      ? found.then(({ value }) => this.#sign(exchange, value), toVerdict)
      : this.#sign(exchange, found.value)
  }

  /** A request for which a name or tag is not valid must not be sent in the session of someone else. */
  #sessionFor(exchange: Exchange): RoleSession | RespondVerdict {
    const sessionName = textFor(this.#name, exchange)
    if (!sessionNameForm.test(sessionName ?? '')) {
      return refuseUser('the name of the role session is not valid')
    }
    const tags: [string, string][] = []
    for (const { key, value } of this.#tags) {
      const found = textFor(value, exchange)
      if (found === undefined || !tagForm.test(found)) {
        return refuseUser(`the session tag ${key} is not valid`)
      }
      tags.push([key, found])
    }
    return { roleArn: this.#config.roleArn, sessionName: sessionName ?? '', tags }
  }

  async #assume(session: RoleSession): Promise<Issued<AwsCredentials>> {
    try {
      const own = await this.#own()
      if (own === undefined) {
        throw new TokenError('failed', 'the environment has no AWS credentials to assume the role')
      }
      const { expiresAt, ...value } = await assumeRole(session, own)
      const left = expiresAt === undefined ? undefined : (expiresAt - Date.now()) / 1_000
      return { value, expiresIn: left }
    } catch (error) {
      if (error instanceof TokenError) throw error
      const { message } = error as Error
      const isRefused =
        error instanceof ServiceRefusal && error.status < 500 && error.status !== 429
      throw isRefused ? new TokenError('failed', message) : unavailable(message, error)
    }
  }
}

function textFor(value: string | Expression, exchange: Exchange): string | undefined {
  return typeof value === 'string' ? value : textOfResult(value.evaluate(exchange))
}
