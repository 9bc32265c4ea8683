/** Makes the result of a tool from the response of an API. */
import { isObject } from '../../../../ground/base/json-object.ts'

interface ApiResponse {
  readonly status: number
  readonly type: string
  /** The beginning of the body, at most as long as results may be. */
  readonly bytes: Uint8Array
  /** Length of the whole body. */
  readonly length: number
  /** The note to the model about further pages. */
  readonly pages?: string | undefined
}

const utf8 = new TextDecoder('utf-8')

/** Returns a CallToolResult. `hasSchema` says that the tool promises structured content. */
export function resultOf(response: ApiResponse, hasSchema: boolean): object {
  const { status, type, bytes, length } = response
  const plain = type.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  const isCut = length > bytes.length
  const shown = textOf(response, plain, isCut)
  if (status < 200 || status >= 300) {
    return failed(`HTTP status ${status}${shown === '' ? '' : `: ${shown}`}`)
  }
  const media = mediaOf(plain, bytes, isCut)
  if (media !== undefined) return { content: [media] }
  const structured = isCut || !plain.includes('json') ? undefined : objectIn(shown)
  const text = shown === '' ? `HTTP status ${status}, without content` : shown
  // Clients refuse a result without the structured content that the tool promises, unless it is an error.
  if (hasSchema && structured === undefined) return failed(text)
  const content = [text, response.pages].flatMap((one) =>
    one === undefined ? [] : [{ type: 'text', text: one }],
  )
  return { content, ...(structured && { structuredContent: structured }) }
}

/** The text of a response. If it is cut, the text says so. */
function textOf({ bytes, length }: ApiResponse, type: string, isCut: boolean): string {
  if (length === 0) return ''
  if (type !== '' && !/^text\/|json|xml|yaml|javascript|urlencoded/.test(type)) {
    return `[${length} bytes of ${type}]`
  }
  const text = utf8.decode(bytes)
  if (!isCut) return text
  const what = `The response has at least ${length} bytes, of which only the first ${bytes.length} are here.`
  // The end of a cut text may be a part of a character.
  return `${text.replace(/\ufffd+$/, '')}\n[${what} Ask for less, for example with filters or pages.]`
}

export const failed = (text: string): object => ({
  content: [{ type: 'text', text }],
  isError: true,
})

function mediaOf(type: string, bytes: Uint8Array, isCut: boolean): object | undefined {
  const [kind] = type.split('/')
  if (isCut || (kind !== 'image' && kind !== 'audio') || type === 'image/svg+xml') return undefined
  return { type: kind, data: Buffer.from(bytes).toString('base64'), mimeType: type }
}

function objectIn(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
