/** The format of vendor D, which no client of the gateway speaks. */
import { type BilledUsage, endsEarly, type VendorFormat } from './format.ts'

interface Turn {
  readonly parts: readonly { readonly text?: string }[]
}

const usageOf = ({ input, output }: BilledUsage) => ({
  promptTokenCount: input,
  candidatesTokenCount: output,
  totalTokenCount: input + output,
})

const candidate = (text: string, finishReason: string | undefined) => ({
  content: { role: 'model', parts: [{ text }] },
  ...(finishReason !== undefined && { finishReason }),
  index: 0,
})

export const generateContent: VendorFormat = {
  asksForUsage: false,
  questionOf(request) {
    const { contents } = request as { readonly contents: readonly Turn[] }
    // Messages of the user that follow each other are parts of one.
    return contents.at(-1)?.parts.at(-1)?.text ?? ''
  },
  whole: ({ tag, pieces, usage }) => ({
    candidates: [candidate(pieces.join(''), 'STOP')],
    usageMetadata: usageOf(usage),
    modelVersion: 'm',
    responseId: tag,
  }),
  events(said) {
    const { tag, pieces, usage } = said
    return pieces
      .map((piece, at) => {
        const isLast = at === pieces.length - 1
        const data = {
          candidates: [candidate(piece, isLast || endsEarly(said) ? 'STOP' : undefined)],
          usageMetadata: isLast ? usageOf(usage) : { promptTokenCount: usage.input },
          modelVersion: 'm',
          responseId: tag,
        }
        return `data: ${JSON.stringify(data)}\r\n\r\n`
      })
      .join('')
  },
  error: (tag) => ({ error: { code: 503, message: `${tag} fails`, status: 'UNAVAILABLE' } }),
}
