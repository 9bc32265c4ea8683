/** Counts the tokens of a request without its provider: texts exactly, tools and media by the rules of vendors. */
import { countTextsForModel } from '../../../core/token-slices.ts'
import type { Block, Chat, DocumentBlock, ImageBlock } from '../../chat.ts'
import { type ClientFormat, needCount } from '../../format.ts'
import type { JsonObject } from '../../json/json.ts'
import { requestTexts } from '../../mask/slots.ts'
import { type ImageSize, imageSizeOf } from './image-size.ts'

/** Tokens of a request in addition to its messages. */
const tokensPerRequest = 3
/** Tokens of a message in addition to its text. */
const tokensPerMessage = 4
/** Tokens of a tool in addition to its name, description and schema. */
const tokensPerTool = 8

export async function countLocally(
  body: JsonObject,
  model: string,
  format: ClientFormat,
): Promise<number> {
  const chat = needCount(format).readRequest(body)
  const messages = requestTexts(body, format.ownTexts).map(({ content }) => content)
  const tools = chat.tools.map(({ name, description = '', schema }) =>
    [name, description, JSON.stringify(schema)].join('\n'),
  )
  const calls = callsOf(chat)
  const counts = await countTextsForModel([...messages, ...tools, ...calls], model)
  const texts = counts.reduce((sum, tokens) => sum + tokens, tokensPerRequest)
  const added = messages.length * tokensPerMessage + tools.length * tokensPerTool
  return texts + added + mediaTokens(chat, model)
}

/** The calls of tools in the conversation, whose arguments are no texts for guards. */
function callsOf({ turns }: Chat): readonly string[] {
  return turns.flatMap(({ blocks }) =>
    blocks.flatMap((block) =>
      block.type === 'tool-call' ? [`${block.name}\n${JSON.stringify(block.input)}`] : [],
    ),
  )
}

function mediaTokens({ turns }: Chat, model: string): number {
  const imageTokens = rulesOf(model)
  const ofBlock = (block: Block): number => {
    switch (block.type) {
      case 'image':
        return imageTokens(sizeOf(block))
      case 'document':
        return pagesOf(block) * tokensPerPage
      case 'tool-result':
        return block.content.reduce((sum, part) => sum + ofBlock(part), 0)
      default:
        return 0
    }
  }
  return turns.reduce((sum, { blocks }) => blocks.reduce((all, one) => all + ofBlock(one), sum), 0)
}

/** A page of a document costs its text and its picture. */
const tokensPerPage = 2_000
/** Bytes of a page if the document does not say how many it has. */
const bytesPerPage = 50_000

/** Documents that are texts are counted as such. */
function pagesOf({ source }: DocumentBlock): number {
  if (source.type === 'url') return 1
  if (source.mediaType !== 'application/pdf') return 0
  const bytes = Buffer.from(source.data, 'base64')
  const found = bytes.toString('latin1').match(/\/Type\s?\/Page(?![a-zA-Z])/g)?.length ?? 0
  return found > 0 ? found : Math.max(1, Math.ceil(bytes.length / bytesPerPage))
}

/** Size of pictures that the gateway cannot read, such as those by URL. */
const usualSize: ImageSize = { width: 1_024, height: 1_024 }

const sizeOf = ({ source }: ImageBlock): ImageSize =>
  (source.type === 'data' ? imageSizeOf(source.data) : undefined) ?? usualSize

type ImageTokens = (size: ImageSize) => number

function rulesOf(model: string): ImageTokens {
  if (/claude/i.test(model)) return claudeTokens
  return /gemini/i.test(model) ? geminiTokens : gptTokens
}

/** Returns the size with a longest side of at most `longest`. */
function within({ width, height }: ImageSize, longest: number): ImageSize {
  const scale = Math.min(1, longest / Math.max(width, height))
  return { width: Math.max(1, width * scale), height: Math.max(1, height * scale) }
}

function claudeTokens(size: ImageSize): number {
  const { width, height } = within(size, 1_568)
  return Math.min(1_600, Math.ceil((width * height) / 750))
}

/** Pictures of up to 384 pixels are one tile, others are cut. */
function geminiTokens({ width, height }: ImageSize): number {
  const tile = 768
  if (width <= 384 && height <= 384) return 258
  return 258 * Math.ceil(width / tile) * Math.ceil(height / tile)
}

/** The shortest side has at most 768 pixels, and each tile has 512. */
function gptTokens(size: ImageSize): number {
  const outer = within(size, 2_048)
  const scale = Math.min(1, 768 / Math.min(outer.width, outer.height))
  const tiles = Math.ceil((outer.width * scale) / 512) * Math.ceil((outer.height * scale) / 512)
  return 85 + 170 * tiles
}
