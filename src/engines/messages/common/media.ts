/** Converts parts of requests that several formats share: texts, images, documents and audio. */
import type {
  AudioBlock,
  DocumentBlock,
  MediaSource,
  SearchResultBlock,
  TextBlock,
} from '../chat.ts'
import { objectAt, stringAt } from '../json/json.ts'
import { LlmError } from '../llm-error.ts'

const dataUrl = /^data:([^;,]+)(?:;[^;,]+)*;base64,(.*)$/s

/** Reads a data URL (RFC 2397, base64 only); undefined for other URLs. */
function dataOfUrl(url: string): { mediaType: string; data: string } | undefined {
  const [, mediaType, data] = dataUrl.exec(url) ?? []
  return mediaType !== undefined && data !== undefined ? { mediaType, data } : undefined
}

/** Decodes data URLs; other URLs stay locations. */
export function sourceOfUrl(url: string): MediaSource {
  const data = dataOfUrl(url)
  return data === undefined ? { type: 'url', url } : { type: 'data', ...data }
}

export function urlOfSource(source: MediaSource): string {
  return source.type === 'url' ? source.url : `data:${source.mediaType};base64,${source.data}`
}

/** Media type of files of an unknown type. */
const anyType = 'application/octet-stream'

export const typesByExtension = new Map<string, string>([
  ['pdf', 'application/pdf'],
  ['txt', 'text/plain'],
  ['md', 'text/markdown'],
  ['csv', 'text/csv'],
  ['html', 'text/html'],
  ['json', 'application/json'],
  ['xml', 'application/xml'],
  ['doc', 'application/msword'],
  ['docx', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'],
  ['xls', 'application/vnd.ms-excel'],
  ['xlsx', 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'],
])

/** Returns the name of a document. PDFs get an extension, because some providers detect the type by it. */
export function fileNameOf({ name = 'document', source }: DocumentBlock): string {
  const isPdf = source.type === 'data' && source.mediaType === 'application/pdf'
  return isPdf && !/\.pdf$/i.test(name) ? `${name}.pdf` : name
}

/** Detects the media type of a file by the extension of its name, or a PDF by its first bytes. */
export function typeOfFile(name: string | undefined, data: string): string {
  const extension = /\.([a-z0-9]+)$/i.exec(name ?? '')?.[1]?.toLowerCase() ?? ''
  const byName = typesByExtension.get(extension)
  return byName ?? (data.startsWith(base64OfPdf) ? 'application/pdf' : anyType)
}

/** The beginning of `%PDF-` in base64. */
const base64OfPdf = 'JVBERi'

/** Reads a file whose data is a data URL or plain base64. */
export function sourceOfFile(data: string, name: string | undefined): MediaSource {
  const source = data.startsWith('data:')
    ? sourceOfUrl(data)
    : { type: 'data' as const, mediaType: anyType, data }
  if (source.type !== 'data' || source.mediaType !== anyType) return source
  return { ...source, mediaType: typeOfFile(name, source.data) }
}

const textTypes = /^(?:text\/|application\/(?:json|xml|x-yaml|yaml)(?:;|$))/i

/** Returns true if the gateway decodes documents of this media type to text. */
export const isTextType = (mediaType: string): boolean => textTypes.test(mediaType)

/** Returns the text of a document with a text media type; undefined for other documents. */
export function textOfDocument({ source }: DocumentBlock): string | undefined {
  if (source.type !== 'data' || !isTextType(source.mediaType)) return undefined
  return Buffer.from(source.data, 'base64').toString('utf8')
}

/** Writes a text document as plain text, for providers that accept only PDFs as documents. */
export function documentAsText({ name, context }: DocumentBlock, text: string): string {
  return [name, context, text].filter((part) => part !== undefined).join('\n\n')
}

/** Writes a search result as plain text, for providers that have no block for it. */
export function searchResultAsText({ title, source, texts }: SearchResultBlock): string {
  return [title, source, ...texts].join('\n')
}

/** Reads a text of the completions or responses format; blank text makes no block. */
export const textBlock = (text: string | undefined): TextBlock[] =>
  text === undefined || text.trim() === '' ? [] : [{ type: 'text', text }]

/** Reads an audio part of the completions or responses format. */
export function audioBlock(part: unknown, path: string): AudioBlock {
  const audio = objectAt(part, 'input_audio')
  const data = stringAt(audio, 'data')
  if (data === undefined) throw new LlmError(400, `${path}.input_audio.data must be a string`)
  return { type: 'audio', data, format: stringAt(audio, 'format') ?? 'wav', path }
}
