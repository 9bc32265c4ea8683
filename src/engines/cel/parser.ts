/**
 * Tokens -> tree, by recursive descent (CEL language definition, Syntax):
 *
 *   Expr     = Or ["?" Or ":" Expr]         Add    = Mul {("+" | "-") Mul}
 *   Or       = And {"||" And}               Mul    = Unary {("*" | "/" | "%") Unary}
 *   And      = Relation {"&&" Relation}     Unary  = {"!"} Member | {"-"} Member
 *   Relation = Add {relation Add}           Member = Primary {"." name ["(" … ")"] | "[" Expr "]"}
 */
import { fail, type Outcome, succeed } from '../../ground/base/outcome.ts'
import { Lexer, type Token } from './lexer.ts'
import { BadSyntax, type CelProblem, problemAt } from './problem.ts'
import { type BinaryOperator, childrenOf, type Expression } from './syntax.ts'

/** Binary operators by precedence, lowest first. */
const levels: readonly ReadonlySet<string>[] = [
  new Set(['==', '!=', '<', '<=', '>', '>=', 'in']),
  new Set(['+', '-']),
  new Set(['*', '/', '%']),
]

/** Names that are reserved for languages that embed CEL. Fields and methods may have these names. */
const reserved: ReadonlySet<string> = new Set(
  (
    'as break const continue else for function if import let loop package namespace return var ' +
    'void while'
  ).split(' '),
)

/** Maximum nesting of an expression; evaluation takes a few stack frames per level. */
const maxDepth = 250
const maxNodes = 10_000
const maxInt = 2n ** 63n - 1n

/** Parses any text; never throws. */
export function parseExpression(source: string): Outcome<Expression, CelProblem> {
  try {
    const root = new Parser(source).parse()
    const offset = tooDeepAt(root)
    return offset === undefined
      ? succeed(root)
      : fail(problemAt(source, offset, 'it nests too deeply'))
  } catch (error) {
    if (error instanceof BadSyntax) return fail(problemAt(source, error.at, error.message))
    throw error
  }
}

/** Returns the offset of a part that nests too deeply, if any. A chain of `&&` or `||` is one level. */
function tooDeepAt(root: Expression): number | undefined {
  const open = [{ part: root, depth: 1 }]
  for (let item = open.pop(); item !== undefined; item = open.pop()) {
    const { part, depth } = item
    if (depth > maxDepth) return part.at
    for (const child of childrenOf(part)) open.push({ part: child, depth: depth + 1 })
  }
  return undefined
}

class Parser {
  readonly #lexer: Lexer
  #token: Token
  #depth = 0
  #nodes = 0

  constructor(source: string) {
    this.#lexer = new Lexer(source)
    this.#token = this.#lexer.next()
  }

  /** Parses the whole text as one expression. @throws BadSyntax */
  parse(): Expression {
    const root = this.#expression()
    if (this.#token.kind !== 'end') throw this.#unexpected()
    return root
  }

  #expression(): Expression {
    this.#enter()
    const condition = this.#chain('or', '||', () => this.#and())
    let result = condition
    if (this.#take('?')) {
      const whenTrue = this.#chain('or', '||', () => this.#and())
      this.#expect(':')
      const whenFalse = this.#expression()
      result = this.#node({ op: 'if', at: condition.at, condition, whenTrue, whenFalse })
    }
    this.#depth--
    return result
  }

  #and(): Expression {
    return this.#chain('and', '&&', () => this.#binary(0))
  }

  #chain(op: 'and' | 'or', mark: string, operand: () => Expression): Expression {
    const first = operand()
    if (!this.#is(mark)) return first
    const operands = [first]
    while (this.#take(mark)) operands.push(operand())
    return this.#node({ op, at: first.at, operands })
  }

  #binary(level: number): Expression {
    const operators = levels[level]
    if (operators === undefined) return this.#unary()
    let left = this.#binary(level + 1)
    while (this.#token.kind === 'mark' && operators.has(this.#token.text)) {
      const operator = this.#token.text as BinaryOperator
      this.#advance()
      const right = this.#binary(level + 1)
      left = this.#node({ op: 'binary', at: left.at, operator, left, right })
    }
    return left
  }

  #unary(): Expression {
    const { at } = this.#token
    if (this.#take('!')) {
      this.#enter()
      const operand = this.#unary()
      this.#depth--
      return this.#node({ op: 'not', at, operand })
    }
    if (!this.#take('-')) return this.#member(this.#primary(false))
    if (this.#token.kind === 'int') return this.#member(this.#primary(true))
    this.#enter()
    const operand = this.#unary()
    this.#depth--
    const isDouble = operand.op === 'literal' && typeof operand.value === 'number'
    if (isDouble) return { ...operand, at, value: -Number(operand.value) }
    return this.#node({ op: 'negate', at, operand })
  }

  #member(primary: Expression): Expression {
    let of = primary
    for (;;) {
      const { at } = this.#token
      if (this.#take('.')) of = this.#selected(of)
      else if (this.#take('[')) {
        const key = this.#expression()
        this.#expect(']')
        of = this.#node({ op: 'index', at, of, key })
      } else return of
    }
  }

  #selected(of: Expression): Expression {
    const token = this.#token
    if (token.kind !== 'name') throw this.#unexpected('a name')
    this.#advance()
    const { at, text: name } = token
    if (token.isQuoted || !this.#take('(')) return this.#node({ op: 'field', at, of, name })
    return this.#node({ op: 'method', at, name, of, args: this.#list(')') })
  }

  #primary(isNegative: boolean): Expression {
    const token = this.#token
    this.#advance()
    const { at } = token
    switch (token.kind) {
      case 'int':
        return this.#node({ op: 'literal', at, value: signed(token, isNegative) })
      case 'literal':
        return this.#node({ op: 'literal', at, value: token.value })
      case 'name':
        return this.#named(token, false)
      case 'mark':
        return this.#marked(token)
      default:
        throw unexpected(token)
    }
  }

  /** Parses an expression that begins with an operator, a bracket or a keyword. */
  #marked(token: Token): Expression {
    const { at, text } = token
    switch (text) {
      case 'true':
      case 'false':
        return this.#node({ op: 'literal', at, value: text === 'true' })
      case 'null':
        return this.#node({ op: 'literal', at, value: null })
      case '(': {
        const inner = this.#expression()
        this.#expect(')')
        return inner
      }
      case '[':
        return this.#node({ op: 'list', at, items: this.#list(']') })
      case '{':
        return this.#node({ op: 'map', at, entries: this.#entries() })
      case '.': {
        const name = this.#token
        this.#advance()
        return this.#named(name, true)
      }
      default:
        throw unexpected(token)
    }
  }

  #named(token: Token, isGlobal: boolean): Expression {
    const { at, text: name } = token
    if (token.kind !== 'name' || token.isQuoted) throw unexpected(token, 'a name')
    if (reserved.has(name)) throw new BadSyntax(at, `${name} is a reserved word`)
    if (this.#is('{')) throw new BadSyntax(at, `there are no messages such as ${name}{}`)
    if (this.#take('(')) return this.#node({ op: 'call', at, name, args: this.#list(')') })
    return this.#node({ op: 'name', at, name, ...(isGlobal && { isGlobal }) })
  }

  /** Parses expressions up to the closing bracket. A comma may follow the last item of a list. */
  #list(close: ')' | ']'): Expression[] {
    const items: Expression[] = []
    while (!this.#take(close)) {
      if (items.length > 0) this.#expect(',')
      if (close === ']' && items.length > 0 && this.#take(close)) break
      items.push(this.#expression())
    }
    return items
  }

  #entries(): (readonly [Expression, Expression])[] {
    const entries: (readonly [Expression, Expression])[] = []
    while (!this.#take('}')) {
      if (entries.length > 0) this.#expect(',')
      if (entries.length > 0 && this.#take('}')) break
      const key = this.#expression()
      this.#expect(':')
      entries.push([key, this.#expression()])
    }
    return entries
  }

  #node(node: Expression): Expression {
    this.#nodes++
    if (this.#nodes > maxNodes) throw new BadSyntax(node.at, 'it has too many parts')
    return node
  }

  #enter(): void {
    this.#depth++
    if (this.#depth > maxDepth) throw new BadSyntax(this.#token.at, 'it nests too deeply')
  }

  #advance(): void {
    this.#token = this.#lexer.next()
  }

  #is(mark: string): boolean {
    return this.#token.kind === 'mark' && this.#token.text === mark
  }

  #take(mark: string): boolean {
    if (!this.#is(mark)) return false
    this.#advance()
    return true
  }

  #expect(mark: string): void {
    if (!this.#take(mark)) throw this.#unexpected(mark)
  }

  #unexpected(wanted?: string): BadSyntax {
    return unexpected(this.#token, wanted)
  }
}

function signed(token: Token & { kind: 'int' }, isNegative: boolean): bigint {
  const value = isNegative ? -token.size : token.size
  if (value > maxInt || value < -maxInt - 1n) {
    throw new BadSyntax(token.at, 'the integer is outside 64 bits')
  }
  return value
}

function unexpected({ kind, at, text }: Token, wanted?: string): BadSyntax {
  const found = kind === 'end' ? 'the expression ends' : `unexpected ${text}`
  const early = kind === 'end' ? ' too early' : ''
  return new BadSyntax(
    at,
    wanted === undefined ? `${found}${early}` : `${found}, expected ${wanted}`,
  )
}
