/** Calls in the name of an administrator, whose token is obtained again when it has expired. */
import {
  type Answer,
  type Call,
  exchange,
  parseAnswer,
  refusal,
  type Server,
  textField,
} from './http.ts'

export interface Administrator {
  readonly realm: string
  readonly clientId: string
  readonly user: string
  readonly password: string
}

const isSuccess = ({ status }: Answer): boolean => status >= 200 && status < 300

export class AdminClient {
  readonly #server: Server
  readonly #administrator: Administrator
  #token: string | undefined

  constructor(server: Server, administrator: Administrator) {
    this.#server = server
    this.#administrator = administrator
  }

  /**
   * Sends a call with the admin token. After a 401 it is sent once more with a new token.
   * @param accepts statuses besides 2xx that the caller deals with
   * @throws IdentityProviderError for every other status
   */
  async call(call: Call, accepts: readonly number[] = []): Promise<Answer> {
    const renew = () => this.#obtainToken()
    this.#token ??= await renew()
    return this.callWith(call, this.#token, renew, accepts)
  }

  /** As `call`, with a bearer of the caller's and the caller's way to a new one. */
  async callWith(
    call: Call,
    bearer: string,
    renew: () => Promise<string>,
    accepts: readonly number[] = [],
  ): Promise<Answer> {
    let answer = await exchange(this.#server, { ...call, bearer })
    if (answer.status === 401) {
      answer = await exchange(this.#server, { ...call, bearer: await renew() })
    }
    if (isSuccess(answer) || accepts.includes(answer.status)) return answer
    throw refusal(this.#server, call, answer, adviceFor(answer.status))
  }

  async #obtainToken(): Promise<string> {
    const { realm, clientId, user, password } = this.#administrator
    const call: Call = {
      method: 'POST',
      path: `/realms/${encodeURIComponent(realm)}/protocol/openid-connect/token`,
      form: { client_id: clientId, username: user, password, grant_type: 'password' },
    }
    const answer = await exchange(this.#server, call)
    if (!isSuccess(answer)) throw refusal(this.#server, call, answer, tokenAdvice(answer.status))
    const token = textField(call, parseAnswer(call, answer), 'access_token')
    this.#token = this.#server.credentials.add(token)
    return token
  }
}

function tokenAdvice(status: number): string {
  if (status === 404) return 'check --admin-realm and --url'
  const refused = status === 400 || status === 401 || status === 403
  return refused ? 'check --admin-user, its password, --admin-realm and --admin-client' : ''
}

function adviceFor(status: number): string {
  if (status === 401) return 'a new token did not help; check that the server has this endpoint'
  if (status === 403) return 'the admin user may not do this'
  return ''
}
