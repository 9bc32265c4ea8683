/** Calls the identity provider with an administrator's token, and obtains a new token when it expires. */
import { exchange, type ProviderCall, type ProviderResponse, type Server } from './http.ts'

interface Administrator {
  readonly realm: string
  readonly clientId: string
  readonly user: string
  readonly password: string
}

export class AdminClient {
  readonly #server: Server
  readonly #administrator: Administrator
  #token: string | undefined

  constructor(server: Server, administrator: Administrator) {
    this.#server = server
    this.#administrator = administrator
  }

  /**
   * Sends a call with the admin token; after a 401, once more with a new token.
   * @param accepts statuses other than 2xx that the caller handles
   * @throws IdentityProviderError for every other status
   */
  async call(call: ProviderCall, accepts: readonly number[] = []): Promise<ProviderResponse> {
    const renew = () => this.#obtainToken()
    this.#token ??= await renew()
    return this.callWith(call, this.#token, renew, accepts)
  }

  /** Works like `call`, but with the given token; after a 401, `renew` is called for a new one. */
  async callWith(
    call: ProviderCall,
    bearer: string,
    renew: () => Promise<string>,
    accepts: readonly number[],
  ): Promise<ProviderResponse> {
    let response = await exchange(this.#server, { ...call, bearer })
    if (response.status === 401) {
      response = await exchange(this.#server, { ...call, bearer: await renew() })
    }
    if (response.isSuccess || accepts.includes(response.status)) return response
    throw response.refusal(adviceFor(response.status))
  }

  async #obtainToken(): Promise<string> {
    const { realm, clientId, user, password } = this.#administrator
    const response = await exchange(this.#server, {
      method: 'POST',
      path: `/realms/${encodeURIComponent(realm)}/protocol/openid-connect/token`,
      form: { client_id: clientId, username: user, password, grant_type: 'password' },
    })
    if (!response.isSuccess) throw response.refusal(tokenAdvice(response.status))
    this.#token = this.#server.credentials.add(response.textField('access_token'))
    return this.#token
  }
}

function tokenAdvice(status: number): string {
  if (status === 404) return 'check --admin-realm and --url'
  const isRefused = status === 400 || status === 401 || status === 403
  return isRefused ? 'check --admin-user, its password, --admin-realm and --admin-client' : ''
}

function adviceFor(status: number): string {
  if (status === 401) return 'a new token did not help; check that the server has this endpoint'
  if (status === 403) return 'the admin user may not do this'
  return ''
}
