// Functions that the tests place in an order, and others that are in no list.

extern "C" {

int seldom_first(int x) { return x + 1; }

int often_second(int x) { return x * 3; }

int seldom_middle(int x) { return x - 7; }

int often_first(int x) { return x ^ 5; }

int often_third(int x) { return x / 3; }

int seldom_last(int x) { return x & 3; }
}
