/** A browser of tests: keeps cookies by host as browsers do, follows redirects of pages, and sends requests of scripts. */
import { send, type TestResponse } from './http-client.ts'

export interface Visit extends TestResponse {
  readonly url: string
  /** The addresses that the browser has been to, in order. */
  readonly trail: readonly string[]
}

interface Options {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

const page = {
  accept: 'text/html,application/xhtml+xml',
  'sec-fetch-mode': 'navigate',
  'sec-fetch-dest': 'document',
  'sec-fetch-site': 'none',
}
const script = {
  accept: '*/*',
  'sec-fetch-mode': 'cors',
  'sec-fetch-dest': 'empty',
  'sec-fetch-site': 'same-origin',
}
const maxRedirects = 15

export class Browser {
  /** Address that every host has; the loopback address if not set. */
  address: string | undefined
  readonly #jars = new Map<string, Map<string, string>>()

  /** The cookies of a host, by name; changes apply to later requests. */
  jar(host: string): Map<string, string> {
    let jar = this.#jars.get(host)
    if (jar === undefined) {
      jar = new Map()
      this.#jars.set(host, jar)
    }
    return jar
  }

  /** Another browser with the same cookies, which may have another address for every host. */
  copy(address = this.address): Browser {
    const other = new Browser()
    other.address = address
    for (const [host, jar] of this.#jars) other.#jars.set(host, new Map(jar))
    return other
  }

  /** Sends one request without following redirects. */
  async send(url: string, { method, headers, body }: Options = {}): Promise<TestResponse> {
    const { hostname, port, pathname, search, host } = new URL(url)
    const jar = this.jar(hostname)
    const cookie = Array.from(jar, ([name, value]) => `${name}=${value}`).join('; ')
    const response = await send(Number(port), {
      method,
      address: this.address,
      path: pathname + search,
      host,
      headers: { ...headers, ...(cookie !== '' && { cookie }) },
      body,
    })
    for (const line of response.headers['set-cookie'] ?? []) store(jar, line)
    return response
  }

  /** Opens a page. */
  async open(url: string, options: Options = {}): Promise<Visit> {
    let current = url
    const trail: string[] = []
    let { method } = options
    for (let at = 0; at < maxRedirects; at++) {
      trail.push(current)
      const headers = { ...page, ...options.headers }
      const response = await this.send(current, { ...options, method, headers })
      const { location } = response.headers
      if (response.status < 300 || response.status > 399 || location === undefined) {
        return { ...response, url: current, trail }
      }
      current = new URL(location, current).href
      method = 'GET'
    }
    throw new Error(`too many redirects: ${trail.join(' ')}`)
  }

  /** Opens a page, and stops at the first redirect. Resolves to where it leads. */
  async start(url: string): Promise<string> {
    const { headers, status, body } = await this.send(url, { headers: page })
    if (headers.location === undefined) throw new Error(`no redirect: ${status} ${body}`)
    return new URL(headers.location, url).href
  }

  /** Sends a request as a script of a page of the host does. */
  fetch(url: string, options: Options = {}): Promise<TestResponse> {
    return this.send(url, { ...options, headers: { ...script, ...options.headers } })
  }
}

/** Browsers refuse cookies of more than 4096 bytes, and those with the prefix that lack its attributes. */
function store(jar: Map<string, string>, line: string): void {
  const [pair = '', ...attributes] = line.split(/;\s*/)
  const equals = pair.indexOf('=')
  const [name, value] = [pair.slice(0, equals), pair.slice(equals + 1)]
  if (name.length + value.length > 4_096) return
  const has = (attribute: string) => attributes.some((one) => one.toLowerCase() === attribute)
  if (name.startsWith('__Host-') && !(has('secure') && has('path=/'))) return
  if (attributes.some((one) => /^max-age=0$/i.test(one))) jar.delete(name)
  else jar.set(name, value)
}
