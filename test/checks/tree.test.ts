import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import ts from 'typescript';
import { everyCode } from '../../src/daemon/every-code.ts';
import { root } from './copied-tree.ts';

interface Source {
  readonly file: string;
  readonly text: string;
}

function sourcesIn(folder: string): Source[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => `${folder}/${path}`)
    .sort()
    .map((file) => ({ file, text: readFileSync(join(root, file), 'utf8') }));
}

const parse = ({ file, text }: Source): ts.SourceFile =>
  ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);

function* nodesOf(node: ts.Node): Generator<ts.Node> {
  yield node;
  // Without the tokens between them, which `getChildren` makes: that takes most of the time of a whole tree.
  const children: ts.Node[] = [];
  ts.forEachChild(node, (child) => {
    children.push(child);
  });
  for (const child of children) yield* nodesOf(child);
}

const nameOf = (node: ts.Node | undefined): string | undefined =>
  node !== undefined && (ts.isIdentifier(node) || ts.isPrivateIdentifier(node)) ? node.text : undefined;

/** The string literals that an expression may evaluate to. */
function literalsOf(expression: ts.Node | undefined): string[] {
  if (expression === undefined) return [];
  if (ts.isStringLiteralLike(expression)) return [expression.text];
  if (ts.isAsExpression(expression) || ts.isParenthesizedExpression(expression)) {
    return literalsOf(expression.expression);
  }
  if (ts.isConditionalExpression(expression)) {
    return [...literalsOf(expression.whenTrue), ...literalsOf(expression.whenFalse)];
  }
  if (
    ts.isBinaryExpression(expression) &&
    expression.operatorToken.kind === ts.SyntaxKind.QuestionQuestionToken
  ) {
    return [...literalsOf(expression.left), ...literalsOf(expression.right)];
  }
  return [];
}

/** What a function of this file is called by, with the place of its parameter `code`. */
function codeParameter(node: ts.Node): [name: string, at: number] | undefined {
  if (!ts.isFunctionLike(node)) return undefined;
  const at = node.parameters.findIndex(({ name }) => nameOf(name) === 'code');
  const name = nameOf(node.name) ?? (ts.isVariableDeclaration(node.parent) && nameOf(node.parent.name));
  return at >= 0 && typeof name === 'string' ? [name, at] : undefined;
}

/** The place of `code` in what a variable takes apart, or in the tuples of a list. */
function codeMember({ name, type }: ts.VariableDeclaration): number {
  if (ts.isArrayBindingPattern(name)) {
    return name.elements.findIndex(
      (element) => ts.isBindingElement(element) && nameOf(element.name) === 'code',
    );
  }
  const tuple = type && [...nodesOf(type)].find(ts.isTupleTypeNode);
  return (
    tuple?.elements.findIndex((member) => ts.isNamedTupleMember(member) && member.name.text === 'code') ?? -1
  );
}

/**
 * The codes a source file shows: what stands for something called `code` (a property, variable, parameter or member of
 * a tuple), first in `new ThresherError()`, or in brackets at the end of a message.
 */
function codesIn(source: Source): string[] {
  const nodes = [...nodesOf(parse(source))];
  const parameters = new Map(nodes.map(codeParameter).filter((found) => found !== undefined));
  return nodes.flatMap((node) => {
    if (ts.isPropertyAssignment(node) && nameOf(node.name) === 'code') return literalsOf(node.initializer);
    if (ts.isNewExpression(node) && nameOf(node.expression) === 'ThresherError') {
      return literalsOf(node.arguments?.[0]);
    }
    if (ts.isCallExpression(node)) {
      const called = ts.isPropertyAccessExpression(node.expression) ? node.expression.name : node.expression;
      const at = parameters.get(nameOf(called) ?? '');
      return at === undefined ? [] : literalsOf(node.arguments[at]);
    }
    if (ts.isVariableDeclaration(node)) {
      if (nameOf(node.name) === 'code') return literalsOf(node.initializer);
      const at = codeMember(node);
      const lists = at >= 0 && node.initializer ? [...nodesOf(node.initializer)] : [];
      return lists.filter(ts.isArrayLiteralExpression).flatMap(({ elements }) => literalsOf(elements[at]));
    }
    if (ts.isStringLiteralLike(node) || ts.isTemplateTail(node)) {
      return [...node.text.matchAll(/ \[([a-z]+(?:-[a-z]+)*)\]$/g)].map(([, code = '']) => code);
    }
    return [];
  });
}

/** Calls that leave tests out: `it.only`, `describe.skip`, `xit`, `this.skip()`, a test without a body. */
function leftOut(source: Source): string[] {
  const calls = ['describe', 'context', 'suite', 'it', 'specify', 'test'];
  const file = parse(source);
  return [...nodesOf(file)].filter(ts.isCallExpression).flatMap((call) => {
    const { expression } = call;
    const away = calls.flatMap((name) => [`${name}.only`, `${name}.skip`, `x${name}`]);
    const called = expression.getText(file);
    const empty = calls.includes(called) && call.arguments.length < 2;
    if (!empty && ![...away, 'this.skip'].includes(called)) return [];
    const { line } = file.getLineAndCharacterOfPosition(call.getStart(file));
    return [`${source.file}:${line + 1} ${called}`];
  });
}

describe('error codes', () => {
  const catalogue = Object.keys(everyCode);
  const shown = new Map<string, string>();
  for (const source of sourcesIn('src')) {
    if (source.file === 'src/daemon/every-code.ts') continue;
    for (const code of codesIn(source)) shown.set(code, source.file);
  }

  it('are found in every place that a code can stand', () => {
    const text = `
      const kinds: readonly (readonly [prefix: string, code: string])[] = [['A', 'in-tuple']];
      const [, code] = known ?? ['A', 'in-taken'];
      const code = a ? 'in-variable' : ('in-parentheses' as const);
      const reason = { code: b ?? 'in-property', message: 'no' };
      const arrow = (code: string) => code;
      class A { #method(a: number, code: string) { this.#method(1, 'in-method'); } }
      function f(code: string) {}
      f('in-function'); arrow('in-arrow'); g('not-here');
      throw new ThresherError('in-error', 'no [in-brackets]');
      h(\`no \${a} [in-template]\`);
      if (code === 'not-compared' || x.code === 'not-compared') list['not-there'];
      type T = { code: 'not-a-type' };
    `;
    expect(codesIn({ file: 'src/a.ts', text })).to.have.members(
      [
        'tuple',
        'taken',
        'variable',
        'parentheses',
        'property',
        'method',
        'function',
        'arrow',
        'error',
        'brackets',
        'template',
      ].map((place) => `in-${place}`),
    );
  });

  it('are all in the catalogue', () => {
    const missing = [...shown].filter(([code]) => !catalogue.includes(code));
    expect(missing.map(([code, file]) => `${file}: ${code}`)).to.deep.equal([]);
  });

  it('of the catalogue are all used', () => {
    expect(catalogue.filter((code) => !shown.has(code))).to.deep.equal([]);
  });
});

describe('tests', () => {
  it('are none of them skipped or focused', () => {
    expect(sourcesIn('test').flatMap(leftOut)).to.deep.equal([]);
  });

  it('would be found if they were', () => {
    const text = [
      "describe.only('a', () => {",
      "  it.skip('b', () => {});",
      "  xit('c', () => {});",
      "  it('d');",
      "  it('e', function () { this.skip(); });",
      "  it('f', () => {});",
      '});',
    ].join('\n');
    expect(leftOut({ file: 'a.ts', text })).to.deep.equal([
      'a.ts:1 describe.only',
      'a.ts:2 it.skip',
      'a.ts:3 xit',
      'a.ts:4 it',
      'a.ts:5 this.skip',
    ]);
  });
});

describe('packages', () => {
  const read = (file: string): unknown => JSON.parse(readFileSync(join(root, file), 'utf8'));
  type Versions = Readonly<Record<string, string>>;
  const kinds = ['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies'] as const;
  const own = read('package.json') as Partial<Record<(typeof kinds)[number], Versions>>;
  const versions = kinds.flatMap((kind) => Object.entries(own[kind] ?? {}));

  it('are pinned to one version', () => {
    expect(versions).to.not.be.empty;
    expect(versions.filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version))).to.deep.equal([]);
  });

  it('are locked at that version', () => {
    const { packages } = read('package-lock.json') as { packages: Record<string, { version?: string }> };
    const differing = versions.filter(
      ([name, version]) => packages[`node_modules/${name}`]?.version !== version,
    );
    expect(differing).to.deep.equal([]);
  });
});
