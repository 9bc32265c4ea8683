/** Images, documents and audio in requests: where they are, and what they are. */
import type { DocumentBlock, MediaSource, SearchResultBlock } from '../chat.ts'

const dataUrl = /^data:([^;,]+)(?:;[^;,]+)*;base64,(.*)$/s

/** Data URLs are taken apart (RFC 2397, base64 only). */
export function sourceOfUrl(url: string): MediaSource {
  const [, mediaType, data] = dataUrl.exec(url) ?? []
  return mediaType !== undefined && data !== undefined
    ? { type: 'data', mediaType, data }
    : { type: 'url', url }
}

export function urlOfSource(source: MediaSource): string {
  return source.type === 'url' ? source.url : `data:${source.mediaType};base64,${source.data}`
}

/** Nothing is known of such a type. */
const anyType = 'application/octet-stream'

const typesByExtension: Readonly<Record<string, string>> = {
  pdf: 'application/pdf',
  txt: 'text/plain',
  md: 'text/markdown',
  csv: 'text/csv',
  html: 'text/html',
  json: 'application/json',
  xml: 'application/xml',
  doc: 'application/msword',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  xls: 'application/vnd.ms-excel',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
}

/** A name with an extension, by which some providers tell what a file is. */
export function fileNameOf({ name = 'document', source }: DocumentBlock): string {
  const isPdf = source.type === 'data' && source.mediaType === 'application/pdf'
  return isPdf && !/\.pdf$/i.test(name) ? `${name}.pdf` : name
}

/** The media type of a file that says nothing else than its name; that of PDFs by their first bytes. */
export function typeOfFile(name: string | undefined, data: string): string {
  const extension = /\.([a-z0-9]+)$/i.exec(name ?? '')?.[1]?.toLowerCase() ?? ''
  const byName = Object.hasOwn(typesByExtension, extension)
    ? typesByExtension[extension]
    : undefined
  return byName ?? (data.startsWith(base64OfPdf) ? 'application/pdf' : anyType)
}

/** `%PDF-` */
const base64OfPdf = 'JVBERi'

/** A file's data: a data URL, or base64 alone. */
export function sourceOfFile(data: string, name: string | undefined): MediaSource {
  const source = data.startsWith('data:')
    ? sourceOfUrl(data)
    : { type: 'data' as const, mediaType: anyType, data }
  if (source.type !== 'data' || source.mediaType !== anyType) return source
  return { ...source, mediaType: typeOfFile(name, source.data) }
}

const textTypes = /^(?:text\/|application\/(?:json|xml|x-yaml|yaml)(?:;|$))/

/** The text of a document that is plain text of some kind; undefined for others. */
export function textOfDocument({ source }: DocumentBlock): string | undefined {
  if (source.type !== 'data' || !textTypes.test(source.mediaType)) return undefined
  return Buffer.from(source.data, 'base64').toString('utf8')
}

/** A document that is text, for providers that take nothing but PDFs. */
export function documentAsText({ name, context }: DocumentBlock, text: string): string {
  return [name, context, text].filter((part) => part !== undefined).join('\n\n')
}

/** A search result for providers that have no such thing. */
export function searchResultAsText({ title, source, texts }: SearchResultBlock): string {
  return [title, source, ...texts].join('\n')
}
