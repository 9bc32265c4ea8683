/** Writes times as RFC 3339 with milliseconds. Times of the same second share most of the text. */
export class TimeTexts {
  #second = Number.NaN
  #text = ''

  /** @throws RangeError if the time, in ms since the Unix epoch, is not one that a Date can have */
  of(ms: number): string {
    const whole = Math.trunc(ms)
    const second = Math.floor(whole / 1_000)
    if (second !== this.#second) {
      this.#text = new Date(second * 1_000).toISOString().slice(0, -4)
      this.#second = second
    }
    const rest = whole - second * 1_000
    return `${this.#text}${rest < 10 ? '00' : rest < 100 ? '0' : ''}${rest}Z`
  }
}
