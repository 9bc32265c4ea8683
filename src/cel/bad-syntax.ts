/** Thrown and caught within the parser only. */
export class BadSyntax {
  readonly at: number
  readonly message: string

  constructor(at: number, message: string) {
    this.at = at
    this.message = message
  }
}
