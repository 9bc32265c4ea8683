/** The texts of a message, or of a piece of a message in an event. */
import { field, listAt, stringAt } from '../../json/json.ts'
import { responseScope, textOfPart } from '../../mask/text-fields.ts'

interface MessageTexts {
  readonly thinking: string
  readonly text: string
  readonly refusal: string
}

/**
 * Reads the texts. Servers name the reasoning in two ways, or send it as parts of a list in `content`:
 * `{type: 'thinking', thinking: [{type: 'text', text}]}`. Parts without a text are ignored.
 */
export function messageTexts(message: unknown): MessageTexts {
  const content = field(message, 'content')
  let thinking = stringAt(message, 'reasoning_content') || stringAt(message, 'reasoning') || ''
  let refusal = stringAt(message, 'refusal') ?? ''
  if (!Array.isArray(content))
    return { thinking, text: stringAt(message, 'content') ?? '', refusal }
  let text = ''
  for (const part of content) {
    const type = stringAt(part, 'type')
    if (type === 'thinking' || type === 'reasoning') thinking += thinkingOfPart(part)
    else if (type === 'refusal') refusal += stringAt(part, 'refusal') ?? ''
    else text += textOfPart(part, responseScope) ?? ''
  }
  return { thinking, text, refusal }
}

/** Returns the text of a part with thinking, which is a text or a list of parts. */
const thinkingOfPart = (part: unknown): string =>
  stringAt(part, 'thinking') ??
  stringAt(part, 'text') ??
  listAt(part, 'thinking')
    .map((piece) => textOfPart(piece, responseScope) ?? '')
    .join('')
