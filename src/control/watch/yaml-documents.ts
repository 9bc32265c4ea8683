/** Parses YAML with a limit of nesting, since the time of the parser grows with the square of the depth. */
import {
  Composer,
  type Document,
  type DocumentOptions,
  Lexer,
  LineCounter,
  type ParseOptions,
  Parser,
  type SchemaOptions,
} from 'yaml'

/** Far more than any object of an API has. */
const maxNesting = 256

/** Thrown if a text is nested too deeply, which is not an error of its syntax. */
export class NestingError extends Error {
  /** Offset of the first part that is too deep. */
  readonly offset: number

  constructor(offset: number) {
    super(`nested deeper than ${maxNesting} levels`)
    this.offset = offset
  }
}

type YamlOptions = ParseOptions & DocumentOptions & SchemaOptions

/**
 * Parses the documents of a text, like `parseAllDocuments` without pretty errors.
 * @throws NestingError
 */
export function parseYamlDocuments(
  text: string,
  options: YamlOptions,
  lines = new LineCounter(),
): Document.Parsed[] {
  const parser = new Parser(lines.addNewLine)
  lines.addNewLine(0)
  return [...new Composer(options).compose(tokensOf(text, parser))] as Document.Parsed[]
}

function* tokensOf(text: string, parser: Parser) {
  for (const lexeme of new Lexer().lex(text)) {
    yield* parser.next(lexeme)
    if (parser.stack.length > maxNesting) throw new NestingError(parser.offset)
  }
  yield* parser.end()
}
