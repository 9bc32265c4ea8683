/** Documents in Converse requests: formats by media type or extension, and names that it accepts. */
import { LlmError } from '../../llm-error.ts'

const formatsByType: Readonly<Record<string, string>> = {
  'application/pdf': 'pdf',
  'text/csv': 'csv',
  'application/msword': 'doc',
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document': 'docx',
  'application/vnd.ms-excel': 'xls',
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet': 'xlsx',
  'text/html': 'html',
  'text/plain': 'txt',
  'text/markdown': 'md',
}

const formats = new Set(Object.values(formatsByType))

/** @throws LlmError 400 where neither the type nor the name tells a format that is known. */
export function documentFormat(mediaType: string, name: string | undefined): string {
  const byType = formatsByType[mediaType.toLowerCase()]
  if (byType !== undefined) return byType
  const extension = /\.([a-z0-9]+)$/i.exec(name ?? '')?.[1]?.toLowerCase()
  if (extension !== undefined && formats.has(extension)) return extension
  throw new LlmError(400, `documents of type ${mediaType} are not supported`)
}

/** Letters, digits, single spaces, hyphens, brackets; each name once in a request. */
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
