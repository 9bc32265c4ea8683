/** Images, documents and audio in Converse requests. */
import type { AudioBlock, DocumentBlock, ImageBlock, MediaSource } from '../../chat.ts'
import { typeOfFile, typesByExtension } from '../../common/media.ts'
import { compact, type JsonObject } from '../../json/json.ts'
import { unsupportedPart } from '../../llm-error.ts'

/** Writes the source of a file; the provider fetches files only from its own object store. */
function writeSource(source: MediaSource, path: string): JsonObject {
  if (source.type === 'data') return { bytes: source.data }
  if (source.url.startsWith('s3://')) return { s3Location: { uri: source.url } }
  throw unsupportedPart(path, 'files by URL')
}

const imageFormats = new Map<string, string>([
  ['image/png', 'png'],
  ['image/jpeg', 'jpeg'],
  ['image/jpg', 'jpeg'],
  ['image/gif', 'gif'],
  ['image/webp', 'webp'],
])

const extensionOf = (name: string): string | undefined =>
  /\.([a-z0-9]+)$/i.exec(name)?.[1]?.toLowerCase()

export function writeImage({ source, path }: ImageBlock): JsonObject {
  const mediaType =
    source.type === 'data' ? source.mediaType : `image/${extensionOf(source.url) ?? ''}`
  const written = writeSource(source, path)
  const format = imageFormats.get(mediaType.toLowerCase())
  if (format === undefined) throw unsupportedPart(path, `images of type ${mediaType}`)
  return { image: { format, source: written } }
}

const audioFormats: ReadonlySet<string> = new Set(
  'aac flac m4a mka mkv mp3 mp4 mpeg mpga ogg opus pcm wav webm x-aac'.split(' '),
)

export function writeAudio({ data, format, path }: AudioBlock): JsonObject {
  if (!audioFormats.has(format)) throw unsupportedPart(path, `audio parts of format ${format}`)
  return { audio: { format, source: { bytes: data } } }
}

const formats = new Set('pdf csv doc docx xls xlsx html txt md'.split(' '))
/** Guards read text documents, which they know by the media type. */
const textFormats = new Set('csv html txt md'.split(' '))

export const isTextFormat = (format: string): boolean => textFormats.has(format.toLowerCase())

const formatsByType = new Map(
  [...typesByExtension].flatMap(([extension, type]) =>
    formats.has(extension) ? [[type, extension] as const] : [],
  ),
)

function documentFormat({ source, name, path }: DocumentBlock): string {
  const mediaType = source.type === 'data' ? source.mediaType : typeOfFile(source.url, '')
  const [type = ''] = mediaType.toLowerCase().split(';')
  const byType = formatsByType.get(type)
  if (byType !== undefined) return byType
  const extension = extensionOf(name ?? '')
  const isKnown = extension !== undefined && formats.has(extension)
  // The name of a file by URL is the only sign of its type.
  if (isKnown && (source.type === 'url' || !textFormats.has(extension))) return extension
  throw unsupportedPart(path, `documents of type ${mediaType}`)
}

export function writeDocument(block: DocumentBlock, names: DocumentNames): JsonObject {
  const source = writeSource(block.source, block.path)
  const format = documentFormat(block)
  const name = names.next(block.name ?? 'document')
  const citations = block.isCited === true ? { enabled: true } : undefined
  return { document: compact({ format, name, source, context: block.context, citations }) }
}

/** Makes unique document names from letters, digits, single spaces, hyphens, parentheses and brackets. */
export class DocumentNames {
  readonly #used = new Map<string, number>()

  next(name: string): string {
    const clean =
      name
        .replace(/\.[a-z0-9]+$/i, '')
        .replace(/[^A-Za-z0-9\-()[\] ]/g, ' ')
        .replace(/ +/g, ' ')
        .trim() || 'document'
    const count = (this.#used.get(clean) ?? 0) + 1
    this.#used.set(clean, count)
    return count === 1 ? clean : `${clean} [${count}]`
  }
}
