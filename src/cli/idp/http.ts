/** One exchange with an identity provider: bounded in time and size, no redirects. */
import { type Credentials, IdentityProviderError } from './problem.ts'

/** Answers are small documents; a longer one is not what was asked for. */
const maxAnswerBytes = 1 << 20

export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Below the base address, with its query. */
  readonly path: string
  readonly bearer?: string
  /** Sent as JSON. */
  readonly json?: unknown
  /** Sent as form fields. */
  readonly form?: Readonly<Record<string, string>>
}

export interface Answer {
  readonly status: number
  readonly text: string
}

export interface Server {
  /** Without a slash at the end. */
  readonly url: string
  /** From the request to the last byte of the answer. */
  readonly timeoutMs: number
  readonly credentials: Credentials
}

/** "POST /realms/main/...": how every message names a call. */
export const nameOf = ({ method, path }: Call): string => `${method} ${path}`

function bodyOf(call: Call): { body?: string | URLSearchParams; type?: string } {
  if (call.form !== undefined) return { body: new URLSearchParams(call.form) }
  if (call.json !== undefined) return { body: JSON.stringify(call.json), type: 'application/json' }
  return {}
}

async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength
    if (size > maxAnswerBytes) throw new Error(`the answer is longer than ${maxAnswerBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** The innermost cause says what happened; fetch itself says "fetch failed". */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.cause !== undefined) return reasonOf(error.cause)
  const { code } = error as NodeJS.ErrnoException
  return error.message === '' ? (code ?? error.name) : error.message
}

/**
 * Sends a call and reads the whole answer, whatever its status.
 * @throws IdentityProviderError where the server cannot be reached, is too slow or says too much
 */
export async function exchange(server: Server, call: Call): Promise<Answer> {
  const { body, type } = bodyOf(call)
  const headers = new Headers({ accept: 'application/json' })
  if (type !== undefined) headers.set('content-type', type)
  if (call.bearer !== undefined) headers.set('authorization', `Bearer ${call.bearer}`)
  try {
    const response = await fetch(server.url + call.path, {
      method: call.method,
      headers,
      ...(body !== undefined && { body }),
      // A credential goes to the address that was given, and nowhere else.
      redirect: 'manual',
      signal: AbortSignal.timeout(server.timeoutMs),
    })
    return { status: response.status, text: await readText(response) }
  } catch (error) {
    const reason = server.credentials.hide(reasonOf(error))
    throw new IdentityProviderError(`${nameOf(call)} failed at ${server.url}: ${reason}`)
  }
}

/** What the server says about a refusal, in the fields that such servers use; empty for nothing. */
function explanationOf(text: string): string {
  try {
    const said = JSON.parse(text) as Readonly<Record<string, unknown>> | null
    const known = [said?.error_description, said?.errorMessage, said?.error]
    return known.find((entry) => typeof entry === 'string') ?? ''
  } catch {
    return ''
  }
}

/** A refusal as an error that names the call, its status and what the server says. */
export function refusal(
  server: Server,
  call: Call,
  { status, text }: Answer,
  advice = '',
): IdentityProviderError {
  const said = server.credentials.hide(explanationOf(text))
  const explanation = said === '' ? '' : ` (${said})`
  const moved = status >= 300 && status < 400 ? 'it redirects; give --url as the server has it' : ''
  const next = advice === '' ? moved : advice
  const more = next === '' ? '' : `: ${next}`
  return new IdentityProviderError(`${nameOf(call)} answers ${status}${explanation}${more}`)
}

/**
 * The answer as JSON.
 * @throws IdentityProviderError where it is none
 */
export function parseAnswer(call: Call, { text }: Answer): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new IdentityProviderError(`${nameOf(call)} answers with what is no JSON`)
  }
}

/**
 * A text field of a JSON answer.
 * @throws IdentityProviderError where it is absent or empty
 */
export function textField(call: Call, answer: unknown, field: string): string {
  const record = (typeof answer === 'object' ? answer : null) as Readonly<
    Record<string, unknown>
  > | null
  const value = record?.[field]
  if (typeof value === 'string' && value !== '') return value
  throw new IdentityProviderError(`${nameOf(call)} answers without a text in '${field}'`)
}
